package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// The limits for `submit check` of a GoMLX notebook.
const (
	limitFirstCheck = 6 * time.Second
	limitWarmCheck  = 1500 * time.Millisecond
)

// gomlxModule has the notebook to check unless another is named.
const gomlxModule, gomlxNotebook = "github.com/gomlx/gomlx", "ml/layers/rational/rational.ipynb"

// checkReport is the result of measureChecks.
type checkReport struct {
	CPU         string      `json:"cpu"`
	LoadAverage string      `json:"load_average"`
	Rounds      int         `json:"rounds"`
	Notebook    string      `json:"notebook"`
	Rows        []submitRow `json:"rows"`
}

// measureChecks times `submit check` of a notebook by GoMLX's authors: the first time, unchanged,
// and after one changed cell. The modules are in the module cache, and compiled.
func measureChecks(ctx context.Context, opts options, out io.Writer) (_ checkReport, err error) {
	report := checkReport{CPU: cpuModel(), LoadAverage: loadAverage(), Rounds: opts.rounds}
	submit, err := build(ctx, "./cmd/submit", "bench-submit")
	if err != nil {
		return report, err
	}
	path := opts.foreign
	if path == "" {
		if path, err = notebookOfGoMLX(ctx); err != nil {
			return report, err
		}
	}
	report.Notebook = filepath.Base(path)
	original, err := os.ReadFile(path)
	if err != nil {
		return report, err
	}
	source, err := os.Getwd()
	if err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "bench-check-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	goCache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return report, err
	}
	c := checking{submit: submit, source: source, dir: dir, goCache: strings.TrimSpace(string(goCache)), original: original}
	if _, err := c.check(ctx); err != nil { // Its modules may not be compiled yet.
		return report, err
	}
	report.Rows, err = c.measure(ctx, opts.rounds, out)
	return report, err
}

// notebookOfGoMLX returns the path of a notebook in the version of GoMLX that gonbatch requires.
func notebookOfGoMLX(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", gomlxModule).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w", gomlxModule, err)
	}
	var module struct{ Dir string }
	err = json.Unmarshal(text, &module)
	return filepath.Join(module.Dir, filepath.FromSlash(gomlxNotebook)), err
}

// checking is a notebook that is checked repeatedly.
type checking struct {
	submit, source, dir string
	// goCache is the user's build cache, which has the modules compiled.
	goCache  string
	original []byte
	changes  int
}

func (c *checking) notebook() string { return filepath.Join(c.dir, "checked.ipynb") }

// forget makes the next check a first one: no lock next to the notebook, and an empty cache.
func (c *checking) forget() error {
	if err := os.Remove(c.notebook() + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.RemoveAll(filepath.Join(c.dir, "cache")), os.WriteFile(c.notebook(), c.original, 0o644))
}

// change adds a statement to the last code cell of the notebook, a different one each time.
func (c *checking) change() error {
	c.changes++
	text, err := changed(c.original, fmt.Sprintf("\nprintln(%d)", c.changes))
	if err != nil {
		return err
	}
	return os.WriteFile(c.notebook(), text, 0o644)
}

// check checks the notebook and returns the seconds that it took.
func (c *checking) check(ctx context.Context) (float64, error) {
	if _, err := os.Stat(c.notebook()); err != nil {
		if err := c.forget(); err != nil {
			return 0, err
		}
	}
	env := []string{rundir.EnvSource + "=" + c.source, "XDG_CACHE_HOME=" + filepath.Join(c.dir, "cache"), "GOCACHE=" + c.goCache}
	return timed(ctx, env, c.submit, "check", c.notebook())
}

func (c *checking) measure(ctx context.Context, rounds int, out io.Writer) (rows []submitRow, err error) {
	for _, m := range []struct {
		name    string
		limit   time.Duration
		prepare func() error
	}{
		{"the first time", limitFirstCheck, c.forget},
		{"unchanged", limitWarmCheck, func() error { return nil }},
		{"one changed cell", limitChanged, c.change},
	} {
		row := submitRow{Name: m.name, Limit: m.limit.Seconds()}
		for range rounds {
			if err := m.prepare(); err != nil {
				return nil, err
			}
			took, err := c.check(ctx)
			if err != nil {
				return nil, err
			}
			row.All = append(row.All, took)
		}
		row.Seconds = median(row.All, func(v float64) float64 { return v })
		fmt.Fprintf(out, "check, %-20s %6.2f s\n", m.name+":", row.Seconds)
		rows = append(rows, row)
	}
	return rows, nil
}

func (r checkReport) markdown() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Check\n\nThe time of `submit check` of a notebook by GoMLX's authors, %s, as the median of %d.\n", r.Notebook, r.Rounds)
	fmt.Fprintf(&b, "Its modules are downloaded and compiled. The first time, submit also has to find out which modules\nthe notebook needs.\n%s, load average %s.\n\n", r.CPU, r.LoadAverage)
	fmt.Fprintf(&b, "| | seconds | limit |\n|---|--:|--:|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s | %.2f | %.1f |\n", row.Name, row.Seconds, row.Limit)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}
