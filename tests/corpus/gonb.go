package corpus

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed observe.py
var observe string

// gonbKernel is the name under which plain GoNB is installed for recording.
const gonbKernel = "plain-gonb"

// GoNB runs notebooks with plain GoNB, using nbclient.
type GoNB struct {
	// Python is an interpreter with nbclient. Root is the source tree, whose .cache/bin has gonb
	// and goimports.
	Python, Root string
	// DataDir is the Jupyter data folder for Install.
	DataDir string
}

// Install writes the kernelspec.
func (g GoNB) Install() error {
	dir := filepath.Join(g.DataDir, "kernels", gonbKernel)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bin := filepath.Join(g.Root, ".cache", "bin")
	spec, err := json.Marshal(map[string]any{
		"argv":         []string{filepath.Join(bin, "gonb"), "--kernel", "{connection_file}", "--raw_error"},
		"display_name": "Go (gonb)", "language": "go", "interrupt_mode": "message",
		"env": map[string]string{"PATH": bin + string(os.PathListSeparator) + os.Getenv("PATH")},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "kernel.json"), spec, 0o644)
}

// cellTimeout is how long a cell may take on a loaded machine.
const cellTimeout = 3 * time.Minute

// Observe runs a notebook in dir, a new folder.
func (g GoNB) Observe(ctx context.Context, c Case, dir string) (o Observed, err error) {
	if err := c.stage(dir); err != nil {
		return o, err
	}
	notebook := filepath.Join(dir, filepath.Base(c.Path))
	env := append(os.Environ(), "JUPYTER_DATA_DIR="+g.DataDir)
	o, err = observeKernel(ctx, g.Python, env, notebook, gonbKernel, dir, fmt.Sprint(int(cellTimeout.Seconds())), g.prelude(c))
	if err != nil {
		return o, fmt.Errorf("%s under GoNB: %w", c.Name, err)
	}
	o.Files, err = newFiles(c, dir)
	return o, err
}

// observeKernel runs observe.py, and makes its output comparable.
func observeKernel(ctx context.Context, python string, env []string, args ...string) (o Observed, err error) {
	root, err := jupyter.Root()
	if err != nil {
		return o, err
	}
	cmd := exec.CommandContext(ctx, python, append([]string{"-c", observe}, args...)...)
	cmd.Env = append(env, jupyter.ClientPath(root))
	out, err := bounded.Output(cmd)
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return o, err
	}
	if err := json.Unmarshal(out, &o); err != nil {
		return o, err
	}
	var executions []int
	for _, cell := range o.Cells {
		if cell.Status != NotRun {
			executions = append(executions, cell.Number)
		}
	}
	for i, cell := range o.Cells {
		cell = quiet(cell)
		cell.Stdout, cell.Stderr = stable(cell.Stdout, executions), stable(cell.Stderr, executions)
		cell.Error = stable(cell.Error, executions)
		o.Cells[i] = cell
	}
	return o, nil
}

// prelude returns code that makes other modules available even if no module proxy lists versions:
// it uses the modules in the source tree's go.mod.
func (g GoNB) prelude(c Case) string {
	if !c.Modules {
		return ""
	}
	return fmt.Sprintf("%%noautoget\n%%env GOFLAGS -mod=mod\n!*cp %[1]s/go.sum . && sed -e 's/^module .*/module session/' -e '/^tool/,/^)/d' %[1]s/go.mod > go.mod", g.Root)
}
