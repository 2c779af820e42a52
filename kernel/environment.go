package kernel

import (
	"os"
	"path/filepath"
	"strings"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
	"gonbatch/internal/userdir"
	"gonbatch/kernel/tool"
)

// environment is a list of NAME=value, as in os.Environ.
type environment []string

func (e environment) get(name string) string { return tool.Get(e, name) }

func (e *environment) set(name, value string) { *e = append(*e, name+"="+value) }

// setDefault sets a variable that is unset or empty.
func (e *environment) setDefault(name, value string) {
	if e.get(name) == "" {
		e.set(name, value)
	}
}

// setHome sets HOME if it is missing, as under some services that start Jupyter, and the user has a
// home: the go command keeps its caches there.
func (e *environment) setHome() {
	if e.get("HOME") != "" {
		return
	}
	if home, err := userdir.Home(e.get); err == nil {
		e.set("HOME", home)
	}
}

// sessionEnvironment returns the environment of GoNB and the cells.
func sessionEnvironment(opts Options, t tools, s *session) environment {
	env := environment(cluster.Alone(opts.Environ)) // A cell is no rank of the step in which Jupyter may run.
	dirs := []string{s.bin(), filepath.Dir(t.gonb), filepath.Dir(t.goimports)}
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self)) // so that a cell can run !submit
	}
	dirs = append(dirs, env.get("PATH"))
	if _, err := lookPath("go", env.get("PATH")); err != nil {
		dirs = append(dirs, filepath.Dir(t.goCommand)) // for commands in cells: Jupyter was started without it
	}
	env.set("PATH", strings.Join(dirs, string(os.PathListSeparator)))
	env.set("TMPDIR", s.tmp())
	env.set(rundir.EnvCellDir, s.cell()) // where package display writes
	env.set(rundir.EnvKeepDir, s.keep()) // and package keep
	env.set(rundir.EnvKeepErrors, filepath.Join(s.cell(), "keep-errors"))
	env.set(rundir.EnvSource, opts.SourceDir)
	env.setDefault(rundir.EnvDevices, "1")
	for _, v := range (rundir.Env{PluginDir: opts.PluginDir}).Vars() {
		env.setDefault(v.Name, v.Value)
	}
	return env
}
