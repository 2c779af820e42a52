package kernel

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/tool"
)

// Name is the kernel's name in Jupyter: the folder of its kernelspec, and the kernelspec.name in a
// notebook's metadata.
const Name = "gonbatch"

// displayName is what Jupyter's launcher shows.
const displayName = "Go (gonbatch)"

// InstallOptions say where and how Install writes the kernelspec. The zero value installs for the
// current user.
type InstallOptions struct {
	// DataDir is Jupyter's data folder. Default: $JUPYTER_DATA_DIR, or else ~/.local/share/jupyter.
	DataDir string
	// Prefix, if set, is the Python environment (its sys.prefix) to install for: DataDir is
	// Prefix/share/jupyter.
	Prefix string
	// SysPrefix installs for the Python environment of the python3 on PATH.
	SysPrefix bool
	// Program is the program that Jupyter starts as `PROGRAM kernel run --connection-file FILE`.
	// Default: this program.
	Program string
	// Env are variables that Jupyter sets for the kernel.
	Env map[string]string
	// Getenv reads the environment, if neither DataDir nor Prefix is set.
	Getenv func(string) string
}

// binDir is the subfolder of the kernelspec's folder with the programs that InstallTools installs.
const binDir = "bin"

//go:embed logo
var logos embed.FS

// spec is a kernelspec: https://jupyter-client.readthedocs.io/en/stable/kernels.html
type spec struct {
	Argv          []string          `json:"argv"`
	DisplayName   string            `json:"display_name"`
	Language      string            `json:"language"`
	InterruptMode string            `json:"interrupt_mode"`
	Env           map[string]string `json:"env,omitempty"`
}

// Install writes the kernelspec, with its logo, and returns its folder. Installing again replaces
// it.
func Install(opts InstallOptions) (string, error) {
	dir, err := opts.specDir()
	if err == nil {
		err = opts.install(dir)
	}
	if err != nil {
		return "", fmt.Errorf("install kernel %s: %w", Name, err)
	}
	return dir, nil
}

func (o InstallOptions) install(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%w: choose another folder with JUPYTER_DATA_DIR", err)
	}
	program, err := o.program(dir)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(spec{
		Argv:        []string{program, "kernel", "run", "--connection-file", "{connection_file}"},
		DisplayName: displayName, Language: "go", InterruptMode: "message", Env: o.Env,
	}, "", "  ")
	if err != nil {
		return err
	}
	if err := rundir.WriteFileAtomic(filepath.Join(dir, "kernel.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return writeLogos(dir)
}

// writeLogos writes the logos under the names that Jupyter looks for.
func writeLogos(dir string) error {
	entries, err := logos.ReadDir("logo")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		data, err := logos.ReadFile("logo/" + entry.Name())
		if err != nil {
			return err
		}
		if err := rundir.WriteFileAtomic(filepath.Join(dir, entry.Name()), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// specDir returns the kernelspec's folder.
func (o InstallOptions) specDir() (string, error) {
	dataDir, err := o.dataDir()
	return filepath.Join(dataDir, "kernels", Name), err
}

func (o InstallOptions) dataDir() (string, error) {
	switch {
	case o.DataDir != "":
		return filepath.Abs(o.DataDir)
	case o.SysPrefix:
		out, err := exec.Command("python3", "-c", "import sys; print(sys.prefix)").Output()
		if err != nil {
			return "", fmt.Errorf("--sys-prefix: ask python3 for its environment: %w: name it with --prefix", err)
		}
		return filepath.Join(strings.TrimSpace(string(out)), "share", "jupyter"), nil
	case o.Prefix != "":
		return filepath.Abs(filepath.Join(o.Prefix, "share", "jupyter"))
	case o.Getenv("JUPYTER_DATA_DIR") != "":
		return filepath.Abs(o.Getenv("JUPYTER_DATA_DIR"))
	case o.Getenv("HOME") != "":
		return filepath.Join(o.Getenv("HOME"), ".local", "share", "jupyter"), nil
	}
	return "", errors.New("neither HOME nor JUPYTER_DATA_DIR is set: set JUPYTER_DATA_DIR to Jupyter's data folder")
}

// program returns the program that the kernelspec names. A program built by `go run` is deleted
// when it ends, so it is copied next to the kernelspec.
func (o InstallOptions) program(dir string) (string, error) {
	if o.Program != "" {
		return filepath.Abs(o.Program)
	}
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if !strings.Contains(filepath.ToSlash(self), "/go-build") { // the go command's temporary folder
		return self, nil
	}
	name := filepath.Join(dir, filepath.Base(self))
	return name, tool.Copy(name, self)
}

// Uninstall removes the kernelspec that Install with the same options writes, and returns its
// folder. It is an error if there is none.
func Uninstall(opts InstallOptions) (string, error) {
	dir, err := opts.specDir()
	if err == nil {
		if _, err = os.Stat(filepath.Join(dir, "kernel.json")); err != nil {
			err = fmt.Errorf("%w: it is not installed there; --user, --prefix and --sys-prefix say where", err)
		}
	}
	if err == nil {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return "", fmt.Errorf("uninstall kernel %s: %w", Name, err)
	}
	return dir, nil
}
