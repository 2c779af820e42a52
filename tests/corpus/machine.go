package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/kernel"
)

// Machine runs notebooks with GoNB, with the kernel and as jobs, each in an environment like that
// of a user of GoNB: a home folder, XLA's plugin, and a module proxy.
type Machine struct {
	// Python is an interpreter with nbclient, Root the source tree, and Program the submit command.
	Python, Root, Program string
	// Dir has what the runs need: kernelspecs, home folders and copies of notebooks.
	Dir string
	// Getenv and Environ are this process's environment.
	Getenv  func(string) string
	Environ []string

	env []string
}

// Install writes both kernelspecs and prepares the environment.
func (m *Machine) Install(ctx context.Context) error {
	gonb := GoNB{Root: m.Root, DataDir: m.dataDir()}
	_, err := kernel.Install(kernel.InstallOptions{DataDir: m.dataDir(), Program: m.Program})
	if err := errors.Join(err, gonb.Install()); err != nil {
		return err
	}
	plugins, err := plugin.Ensure(ctx, plugin.Options{Getenv: m.Getenv, Progress: os.Stderr})
	if err != nil {
		return err
	}
	settings, err := goSettings(ctx)
	if err != nil {
		return err
	}
	m.env = append(m.Environ, settings...)
	m.env = append(m.env,
		"JUPYTER_DATA_DIR="+m.dataDir(), rundir.EnvSource+"="+m.Root, rundir.EnvPluginDir+"="+plugins,
		rundir.EnvXLAPath+"="+plugins, rundir.EnvXLANoInstall+"=1",
	)
	return nil
}

func (m *Machine) dataDir() string { return filepath.Join(m.Dir, "jupyter") }

// goSettings returns the go command's settings, which would be lost in another home folder. The
// modules that were downloaded before come first, so that the newest version of a module is the
// same on all sides, whatever a proxy lists.
func goSettings(ctx context.Context) (settings []string, err error) {
	names := []string{"GOPATH", "GOMODCACHE", "GOCACHE", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOFLAGS", "GOTOOLCHAIN"}
	out, err := bounded.Output(exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, names...)...))
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	values := map[string]string{}
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	downloaded := "file://" + filepath.ToSlash(filepath.Join(values["GOMODCACHE"], "cache", "download"))
	values["GOPROXY"] = strings.TrimSuffix(downloaded+","+values["GOPROXY"], ",")
	for _, name := range names {
		settings = append(settings, name+"="+values[name])
	}
	return settings, nil
}

// workplace is where one side runs a notebook.
type workplace struct {
	// notebook is the file, home the home folder, and env the environment.
	notebook, home string
	env            []string
}

// prepare copies the notebook's folder and creates a home folder.
func (m *Machine) prepare(folder, name string, side string, rules Rules, d document) (workplace, error) {
	top, err := os.MkdirTemp(m.Dir, side+"-")
	if err != nil {
		return workplace{}, err
	}
	home, copied := filepath.Join(top, "home"), filepath.Join(top, "folder")
	w := workplace{notebook: filepath.Join(copied, name), home: home, env: append(slices.Clone(m.env), "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "HOME="+home)}
	for _, name := range slices.Sorted(maps.Keys(rules.Env)) {
		w.env = append(w.env, name+"="+os.Expand(rules.Env[name], w.setting))
	}
	if err := errors.Join(os.MkdirAll(home, 0o755), os.CopyFS(copied, os.DirFS(folder))); err != nil {
		return w, err
	}
	for name, target := range rules.Home {
		link := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Symlink(os.Expand(target, w.setting), link)); err != nil {
			return w, err
		}
	}
	return w, d.write(w.notebook)
}

// setting returns a variable of the environment.
func (w workplace) setting(name string) (value string) {
	for _, entry := range w.env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// clear removes the workplace. It may have folders that are not writable, and a go command may
// still be writing telemetry into it.
func (w workplace) clear() (err error) {
	top := filepath.Dir(w.home)
	for range 20 {
		_ = filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				return os.Chmod(path, 0o755)
			}
			return err
		})
		if err = os.RemoveAll(top); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// Download downloads modules, each as PATH@VERSION, into the module cache.
func Download(ctx context.Context, modules []string) error {
	if len(modules) == 0 {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"mod", "download"}, modules...)...)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		return fmt.Errorf("%w: go mod download: %s", err, out)
	}
	return nil
}
