package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"gonbatch/internal/rundir"
)

// result is what a notebook has reached.
type result struct {
	Command  string             `json:"command"`
	Machine  string             `json:"machine"`
	Load     string             `json:"load_average_before"`
	Seconds  float64            `json:"seconds"`
	Metrics  map[string]float64 `json:"metrics"` // The last value of each, with the training's name if there are several.
	Output   []string           `json:"output"`  // The lines that the page shows.
	Pictures []string           `json:"pictures"`
	Skipped  string             `json:"skipped,omitempty"` // Why it was not run.
}

// run runs a notebook.
func (n notebook) run(ctx context.Context, submit string, o options, out io.Writer) (r result, err error) {
	words := n.words()
	r.Command, r.Machine, r.Load = "submit "+strings.Join(words, " "), machine(), loadAverage()
	if n.needs != nil {
		if err := n.needs(ctx); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			r.Skipped = strings.TrimSuffix(first, ":")
			return r, ctx.Err()
		}
	}
	folder := filepath.Join(o.runs, n.name+"-"+time.Now().Format("20060102-150405"))
	if folder, err = filepath.Abs(folder); err != nil {
		return r, err
	}
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, submit, append([]string{"--run-root", folder}, words...)...)
	cmd.Stdout, cmd.Stderr = io.MultiWriter(out, &text), os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	began := time.Now()
	if err := cmd.Run(); err != nil {
		return r, fmt.Errorf("%s: %w", r.Command, err)
	}
	r.Seconds = time.Since(began).Seconds()
	for line := range strings.Lines(text.String()) {
		if n.shows != nil && n.shows.MatchString(line) {
			r.Output = append(r.Output, strings.TrimRight(line, "\n"))
		}
	}
	return r, r.read(folder, n, o.pictures)
}

// read reads the metrics and the output of the only run in a folder, and copies its pictures.
func (r *result) read(folder string, n notebook, pictures string) error {
	runs, err := rundir.List(folder)
	if err != nil {
		return err
	}
	if len(runs) != 1 {
		return fmt.Errorf("%s has %d run directories, want one", folder, len(runs))
	}
	measured, err := rundir.ReadMetrics(runs[0])
	if err != nil {
		return err
	}
	r.Metrics = last(measured)
	cells, err := executedCells(runs[0])
	if err != nil {
		return err
	}
	r.Output = append(r.Output, printedBy(cells, n.whole)...)
	drawn := drawnBy(cells, cmp.Or(n.pictures, mostPictures))
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	for i, content := range drawn {
		file := fmt.Sprintf("%s-%d.png", n.name, i+1)
		r.Pictures = append(r.Pictures, file)
		if err := os.WriteFile(filepath.Join(pictures, file), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// last returns the last finite value of each metric. If there are several trainings, the name of a
// metric begins with its training's.
func last(all []rundir.Measurement) map[string]float64 {
	several := slices.ContainsFunc(all, func(m rundir.Measurement) bool { return m.Training != all[0].Training })
	found := map[string]float64{}
	for _, m := range all {
		for name, value := range m.Values {
			if several {
				name = m.Training + " " + name
			}
			if !math.IsNaN(value) && !math.IsInf(value, 0) {
				found[name] = value
			}
		}
	}
	return found
}

// missed returns an error that names the goals which a result doesn't reach.
func (n notebook) missed(r result) error {
	var all []error
	for _, g := range n.goals {
		if r.Skipped == "" && !g.met(r) {
			all = append(all, fmt.Errorf("%s: the goal is missed: %s", n.name, g.text))
		}
	}
	return errors.Join(all...)
}

// summary is the result in one line: the metrics of the test, or else of the validation, or else
// those of the training.
func (r result) summary() string {
	if r.Skipped != "" {
		return "not run: " + r.Skipped
	}
	for _, part := range []string{"test/", "val/", "train/"} {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(r.Metrics)) {
			if strings.Contains(" "+name, " "+part) && (part != "train/" || strings.HasSuffix(name, "loss")) {
				all = append(all, fmt.Sprintf("%s %.4g", name, r.Metrics[name]))
			}
		}
		if len(all) > 0 {
			return strings.Join(all, ", ")
		}
	}
	return ""
}

// machine names this machine.
func machine() string {
	model := "unknown"
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			model = cpus[0].ModelName
		}
	}
	return fmt.Sprintf("%s, %d cores", model, runtime.NumCPU())
}

func loadAverage() string {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if load, err := fs.LoadAvg(); err == nil {
			return fmt.Sprint(load.Load1)
		}
	}
	return "unknown"
}
