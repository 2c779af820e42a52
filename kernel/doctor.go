package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/tool"
)

// Finding is what Doctor found of one thing that the kernel needs.
type Finding struct {
	// Name is the thing's name, Found where or what it is.
	Name, Found string
	// Err says what is wrong with it, and how that is fixed; nil if nothing is.
	Err error
	// Optional is set if the kernel runs without it.
	Optional bool
}

// WriteFindings lists findings, and returns an error if the kernel can't run.
func WriteFindings(w io.Writer, findings []Finding) error {
	wrong := 0
	for _, f := range findings {
		mark, text := "ok     ", f.Found
		switch {
		case f.Err != nil && f.Optional:
			mark, text = "missing", f.Err.Error()
		case f.Err != nil:
			mark, text = "WRONG  ", f.Err.Error()
			wrong++
		}
		if _, err := fmt.Fprintf(w, "%s  %-18s %s\n", mark, f.Name, text); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return errors.New("the kernel cannot run: fix the items marked WRONG")
	}
	return nil
}

// Doctor looks at everything that a session needs, without starting one. Of opts it uses SourceDir,
// PluginDir and Environ.
func Doctor(opts Options) []Finding {
	env := environment(opts.Environ)
	specFound, spec := specFinding(env)
	for _, name := range []string{rundir.EnvTools, rundir.EnvGo} {
		env.setDefault(name, spec.Env[name]) // as Jupyter does
	}
	findings := []Finding{goFinding(env), compilerFinding(env), sourceFinding(opts.SourceDir), folderFinding(env)}
	return append(append(findings, toolFindings(env, opts.SourceDir)...), modulesFinding(env, opts.SourceDir), pluginFinding(opts.PluginDir), specFound)
}

func goFinding(env environment) Finding {
	f := Finding{Name: "Go"}
	command, err := findGo(env)
	if err != nil {
		f.Err = err
		return f
	}
	out, err := exec.Command(command, "version").Output()
	if err != nil {
		f.Err = fmt.Errorf("%s version: %w: install Go again", command, err)
		return f
	}
	f.Found = command + ", " + strings.TrimPrefix(strings.TrimSpace(string(out)), "go version ")
	return f
}

func compilerFinding(env environment) Finding {
	f := Finding{Name: "C compiler"}
	for _, name := range []string{env.get("CC"), "gcc", "cc", "clang"} {
		if path, err := lookPath(name, env.get("PATH")); name != "" && err == nil {
			f.Found = path
			return f
		}
	}
	f.Err = errors.New("none on PATH, XLA's binding needs one: on Debian, apt-get install gcc libc6-dev")
	return f
}

func sourceFinding(dir string) Finding {
	_, err := moduleText(dir)
	return Finding{Name: "gonbatch's source", Found: dir, Err: err}
}

// folderFinding looks for the folder that a session would be in.
func folderFinding(env environment) Finding {
	f := Finding{Name: "folder of sessions"}
	dir, reason, err := makeSessionDir(sessionParents(env))
	if err != nil {
		f.Err = err
		return f
	}
	f.Found = filepath.Dir(dir)
	if reason != nil {
		f.Found += " (" + strings.ReplaceAll(reason.Error(), "\n", "; ") + ")"
	}
	f.Err = os.RemoveAll(dir)
	return f
}

// toolFindings looks for the programs where a session does, and at their versions.
func toolFindings(env environment, sourceDir string) []Finding {
	pins, err := tool.Pins(sourceDir)
	if err != nil {
		return []Finding{{Name: "programs", Err: err}}
	}
	dirs := env.get(rundir.EnvTools) + string(os.PathListSeparator) + env.get("PATH")
	if command, err := findGo(env); err == nil {
		dirs = toolPath(env, command, sourceDir)
	}
	var findings []Finding
	for _, pin := range pins {
		f := Finding{Name: pin.Name, Optional: pin.Optional}
		path, err := lookPath(pin.Name, dirs)
		switch {
		case err != nil && pin.Optional:
			f.Err = errors.New("not found, so there is no completion: run submit kernel install")
		case err != nil:
			f.Err = errors.New("not found: run submit kernel install")
		case !pin.Is(path):
			f.Optional = true // it may do
			f.Err = fmt.Errorf("%s has version %q, the kernel was tested with %s: run submit kernel install", path, pin.VersionOf(path), pin.Version)
		default:
			f.Found = path + ", " + pin.Version
		}
		findings = append(findings, f)
	}
	return findings
}

// modulesFinding reports whether cells can import GoMLX and gonbatch without a network.
func modulesFinding(env environment, sourceDir string) Finding {
	f := Finding{Name: "Go modules", Found: "in the module cache", Optional: true}
	if err := checkModules(env, sourceDir); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		f.Err = fmt.Errorf("not all in the module cache (%s): run submit kernel warm, with a network", first)
	}
	return f
}

func pluginFinding(dir string) Finding {
	f := Finding{Name: "XLA plugin", Found: dir, Optional: true}
	if dir == "" {
		f.Err = errors.New("not found: the first cell that needs it installs it, and so does submit")
	}
	return f
}

// specFinding looks for the kernelspec where Jupyter does, and for the program that it names.
func specFinding(env environment) (f Finding, s spec) {
	f = Finding{Name: "kernelspec"}
	for _, dir := range specDirs(env) {
		file := filepath.Join(dir, "kernels", Name, "kernel.json")
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		f.Found = file
		if err := json.Unmarshal(text, &s); err != nil || len(s.Argv) == 0 {
			f.Err = fmt.Errorf("%s is damaged: run submit kernel install again", file)
		} else if _, err := os.Stat(s.Argv[0]); err != nil {
			f.Err = fmt.Errorf("it starts %s, which is gone: run submit kernel install again", s.Argv[0])
		}
		return f, s
	}
	f.Err = errors.New("not installed: run submit kernel install, with --sys-prefix in a Python environment")
	return f, s
}

// specDirs are Jupyter's data folders that can be known without asking it.
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
