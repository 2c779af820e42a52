package corpus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
	"gonbatch/kernel"
	"gonbatch/submit/export"
)

// cells are what the code cells of a notebook did, by number.
type cells map[int]Cell

// inKernel runs a notebook cell by cell. After a cell that fails, the others still run.
func (m *Machine) inKernel(ctx context.Context, kernelName string, w workplace, limit time.Duration) (cells, error) {
	seconds := fmt.Sprint(int(limit.Seconds()))
	o, err := observeKernel(ctx, m.Python, w.env, "--go-on", w.notebook, kernelName, filepath.Dir(w.notebook), seconds)
	if err != nil {
		return nil, fmt.Errorf("%s under %s: %w", filepath.Base(w.notebook), kernelName, err)
	}
	seen := cells{}
	for _, cell := range o.Cells {
		if cell.Code != 0 {
			cell.Status = Failed // GoNB reports ok if a shell command failed.
		}
		seen[cell.Number] = cell
	}
	return seen, nil
}

// gonb runs a notebook with plain GoNB.
func (m *Machine) gonb(ctx context.Context, w workplace, limit time.Duration) (cells, error) {
	return m.inKernel(ctx, gonbKernel, w, limit)
}

// kernel runs a notebook with gonbatch's kernel.
func (m *Machine) kernel(ctx context.Context, w workplace, limit time.Duration) (cells, error) {
	return m.inKernel(ctx, kernel.Name, w, limit)
}

// named matches the cells that a message names.
var named = regexp.MustCompile(`\.ipynb(?:, cell |\[cell )(\d+)`)

// check runs submit check. The cells that its message names have failed, or all cells if it names
// none. The other cells have GoNB's output.
func (m *Machine) check(ctx context.Context, w workplace, gonb cells) (seen cells, message string, err error) {
	cmd := exec.CommandContext(ctx, m.Program, "check", filepath.Base(w.notebook))
	cmd.Dir, cmd.Env = filepath.Dir(w.notebook), w.env
	_, err = bounded.Output(cmd)
	seen = maps.Clone(gonb)
	for number, cell := range seen {
		cell.Status = OK
		seen[number] = cell
	}
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return seen, "", err
	}
	message = string(exit.Stderr)
	places := named.FindAllStringSubmatch(message, -1)
	for _, place := range places {
		number, _ := strconv.Atoi(place[1])
		seen[number] = Cell{Number: number, Status: Failed, Error: message}
	}
	for number := range seen {
		if len(places) == 0 {
			seen[number] = Cell{Number: number, Status: Failed, Error: message}
		}
	}
	return seen, message, nil
}

// job runs a notebook as a job on this machine.
func (m *Machine) job(ctx context.Context, w workplace, limit time.Duration, gonb cells) (cells, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.Program, "--local", "--run-root", runRoot, filepath.Base(w.notebook))
	cmd.Dir, cmd.Env = filepath.Dir(w.notebook), w.env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // So that no program is left running.
	cmd.WaitDelay = time.Minute
	out, err := bounded.CombinedOutput(cmd)
	code, err := codeOf(err)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	dirs, err := rundir.List(filepath.Join(cmd.Dir, runRoot))
	if err != nil || len(dirs) == 0 {
		return nil, errors.Join(err, fmt.Errorf("submit --local %s ran nothing: %s", filepath.Base(w.notebook), out))
	}
	return m.ofRun(dirs[0], w.notebook, code, string(out), gonb)
}

// ofRun returns what the cells of a run did. The first unfinished cell has failed. A cell that runs
// nothing in a job concerns only the session, and counts as in GoNB.
func (m *Machine) ofRun(dir rundir.Dir, notebook string, code int, output string, gonb cells) (cells, error) {
	nb, err := nbformat.Read(notebook)
	if err != nil {
		return nil, err
	}
	module, err := export.FromNotebook(nb, export.Options{SourceDir: m.Root})
	if err != nil {
		return nil, err
	}
	seen, err := streams(dir)
	if err != nil {
		return nil, err
	}
	status := statusOf(module.Cells, func(name string) bool { return code == 0 || rundir.IsFinished(dir, name) })
	for number, cell := range seen {
		s, runs := status[number]
		if !runs {
			cell, s = gonb[number], OK
		}
		if cell.Status = s; s == Failed {
			cell.Error = output
		}
		seen[number] = cell
	}
	return seen, nil
}

// statusOf returns how those cells of a job ended that run something. None runs after one that
// failed.
func statusOf(made []rundir.Cell, finished func(name string) bool) map[int]Status {
	status := map[int]Status{}
	now := OK
	for _, cell := range made {
		if now == Failed {
			now = NotRun
		}
		if now == OK && !finished(cell.Name) {
			now = Failed
		}
		if before := status[cell.Number]; before == "" || before == OK {
			status[cell.Number] = now
		}
	}
	return status
}
