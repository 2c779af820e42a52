package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/tool"
	"gonbatch/submit/report"
)

// Doctor checks everything that a session needs, without starting one. It uses SourceDir, PluginDir
// and Environ of opts.
func Doctor(opts Options) report.Doctor {
	env := environment(opts.Environ)
	specFile, spec, specErr := findSpec(env)
	for _, name := range []string{rundir.EnvTools, rundir.EnvGo} {
		env.setDefault(name, spec.Env[name]) // as Jupyter does
	}
	_, sourceErr := moduleText(opts.SourceDir)
	findings := []report.Finding{
		finding("Go", false)(lookAtGo(env)),
		finding("C compiler", false)(lookAtCompiler(env)),
		finding("gonbatch's source", false)(opts.SourceDir, sourceErr),
		finding("folder of sessions", false)(lookAtSessions(env)),
	}
	findings = append(findings, lookAtTools(env, opts.SourceDir)...)
	if found, err := lookAtPapermill(env, opts.SourceDir); !errors.Is(err, errNoPapermill) {
		findings = append(findings, finding("papermill", true)(found, err))
	}
	findings = append(findings,
		finding("Go modules", true)(lookAtModules(env, opts.SourceDir)),
		finding("XLA plugin", true)(lookAtPlugin(opts.PluginDir)),
		finding("kernelspec", false)(specFile, specErr),
	)
	wrong := func(f report.Finding) bool { return f.Problem != "" && !f.Optional }
	return report.Doctor{OK: !slices.ContainsFunc(findings, wrong), Findings: findings}
}

// finding returns a function for the result of a check: where or what a thing is, or an error that
// says how to fix it. The kernel runs without an optional thing.
func finding(name string, optional bool) func(found string, err error) report.Finding {
	return func(found string, err error) report.Finding {
		if err != nil {
			return report.Finding{Name: name, Optional: optional, Problem: err.Error()}
		}
		return report.Finding{Name: name, Optional: optional, Found: found}
	}
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

// lookAtTools checks that the programs are where a session looks for them, and their versions.
func lookAtTools(env environment, sourceDir string) (findings []report.Finding) {
	pins, err := tool.Pins(sourceDir)
	if err != nil {
		return []report.Finding{finding("programs", false)("", err)}
	}
	dirs := env.get(rundir.EnvTools) + string(os.PathListSeparator) + env.get("PATH")
	if command, err := findGo(env); err == nil {
		dirs = toolPath(env, command, sourceDir)
	}
	for _, pin := range pins {
		found, usable, err := lookAtTool(pin, dirs)
		findings = append(findings, finding(pin.Name, pin.Optional || usable && err != nil)(found, err))
	}
	return findings
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
