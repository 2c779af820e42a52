package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/tool"
	"gonbatch/submit/report"
)

// check checks one thing that the kernel needs. look returns where or what it is, or an error that
// says how to fix it.
type check struct {
	name string
	// optional is set if the kernel runs without it.
	optional bool
	look     func() (found string, err error)
}

// Doctor checks everything that a session needs, without starting one. It uses SourceDir, PluginDir
// and Environ of opts.
func Doctor(opts Options) report.Doctor {
	env := environment(opts.Environ)
	specFile, spec, specErr := findSpec(env)
	for _, name := range []string{rundir.EnvTools, rundir.EnvGo} {
		env.setDefault(name, spec.Env[name]) // as Jupyter does
	}
	checks := []check{
		{"Go", false, func() (string, error) { return lookAtGo(env) }},
		{"C compiler", false, func() (string, error) { return lookAtCompiler(env) }},
		{"gonbatch's source", false, func() (string, error) { _, err := moduleText(opts.SourceDir); return opts.SourceDir, err }},
		{"folder of sessions", false, func() (string, error) { return lookAtSessions(env) }},
	}
	checks = append(checks, toolChecks(env, opts.SourceDir)...)
	if found, err := lookAtPapermill(env, opts.SourceDir); !errors.Is(err, errNoPapermill) {
		checks = append(checks, check{"papermill", true, func() (string, error) { return found, err }})
	}
	return examine(append(checks,
		check{"Go modules", true, func() (string, error) { return lookAtModules(env, opts.SourceDir) }},
		check{"XLA plugin", true, func() (string, error) { return lookAtPlugin(opts.PluginDir) }},
		check{"kernelspec", false, func() (string, error) { return specFile, specErr }},
	))
}

// examine runs all checks and returns their report.
func examine(checks []check) report.Doctor {
	doctor := report.Doctor{OK: true}
	for _, c := range checks {
		f := report.Finding{Name: c.name, Optional: c.optional}
		found, err := c.look()
		if err != nil {
			f.Problem = err.Error()
			doctor.OK = doctor.OK && c.optional
		} else {
			f.Found = found
		}
		doctor.Findings = append(doctor.Findings, f)
	}
	return doctor
}

func lookAtGo(env environment) (string, error) {
	command, err := findGo(env)
	if err != nil {
		return "", err
	}
	out, err := exec.Command(command, "version").Output()
	if err != nil {
		return "", fmt.Errorf("%s version: %w: install Go again", command, err)
	}
	return command + ", " + strings.TrimPrefix(strings.TrimSpace(string(out)), "go version "), nil
}

func lookAtCompiler(env environment) (string, error) {
	for _, name := range []string{env.get("CC"), "gcc", "cc", "clang"} {
		if path, err := lookPath(name, env.get("PATH")); name != "" && err == nil {
			return path, nil
		}
	}
	return "", errors.New("none on PATH; XLA's binding needs one: on Debian, apt-get install gcc libc6-dev")
}

// lookAtSessions looks for the folder in which a session would be.
func lookAtSessions(env environment) (string, error) {
	dir, reason, err := makeSessionDir(sessionParents(env))
	if err != nil {
		return "", err
	}
	found := filepath.Dir(dir)
	if reason != nil {
		found += " (" + strings.ReplaceAll(reason.Error(), "\n", "; ") + ")"
	}
	return found, os.RemoveAll(dir)
}

// toolChecks check that the programs are where a session looks for them, and their versions.
func toolChecks(env environment, sourceDir string) []check {
	pins, err := tool.Pins(sourceDir)
	if err != nil {
		return []check{{"programs", false, func() (string, error) { return "", err }}}
	}
	dirs := env.get(rundir.EnvTools) + string(os.PathListSeparator) + env.get("PATH")
	if command, err := findGo(env); err == nil {
		dirs = toolPath(env, command, sourceDir)
	}
	var checks []check
	for _, pin := range pins {
		found, usable, err := lookAtTool(pin, dirs)
		checks = append(checks, check{pin.Name, pin.Optional || usable && err != nil, func() (string, error) { return found, err }})
	}
	return checks
}

// lookAtTool looks for a program in dirs. Another version counts as usable: it may work.
func lookAtTool(pin tool.Pin, dirs string) (found string, usable bool, err error) {
	path, err := lookPath(pin.Name, dirs)
	switch {
	case err != nil && pin.Optional:
		return "", false, errors.New("not found, so there is no completion: run submit kernel install")
	case err != nil:
		return "", false, errors.New("not found: run submit kernel install")
	case !pin.Is(path):
		return "", true, fmt.Errorf("%s has version %q, the kernel was tested with %s: run submit kernel install", path, pin.VersionOf(path), pin.Version)
	}
	return path + ", " + pin.Version, true, nil
}

// lookAtModules reports whether cells can import GoMLX and gonbatch without a network.
func lookAtModules(env environment, sourceDir string) (string, error) {
	if err := checkModules(env, sourceDir); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return "", fmt.Errorf("not all in the module cache (%s): run submit kernel warm, with a network", first)
	}
	return "in the module cache", nil
}

func lookAtPlugin(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("not found: the first cell that needs it installs it, and so does submit")
	}
	return dir, nil
}

// findSpec looks for the kernelspec where Jupyter does, and for the program that it names.
func findSpec(env environment) (file string, s spec, err error) {
	for _, dir := range specDirs(env) {
		file = filepath.Join(dir, "kernels", Name, "kernel.json")
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if err := json.Unmarshal(text, &s); err != nil || len(s.Argv) == 0 {
			return file, s, fmt.Errorf("%s is damaged: run submit kernel install again", file)
		}
		if _, err := os.Stat(s.Argv[0]); err != nil {
			return file, s, fmt.Errorf("it starts %s, which is gone: run submit kernel install again", s.Argv[0])
		}
		return file, s, nil
	}
	return "", s, errors.New("not installed: run submit kernel install, with --sys-prefix in a Python environment")
}

// specDirs returns those of Jupyter's data folders that can be known without asking Jupyter.
func specDirs(env environment) []string {
	dirs := filepath.SplitList(env.get("JUPYTER_PATH"))
	if dir := env.get("JUPYTER_DATA_DIR"); dir != "" {
		dirs = append(dirs, dir)
	} else if home := env.get("HOME"); home != "" {
		dirs = append(dirs, filepath.Join(home, ".local", "share", "jupyter"))
	}
	prefixes := []string{env.get("VIRTUAL_ENV"), env.get("CONDA_PREFIX")}
	if python, err := lookPath("python3", env.get("PATH")); err == nil {
		prefixes = append(prefixes, filepath.Dir(filepath.Dir(python)))
	}
	for _, prefix := range append(prefixes, "/usr/local", "/usr") {
		if prefix != "" {
			dirs = append(dirs, filepath.Join(prefix, "share", "jupyter"))
		}
	}
	return dirs
}
