package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/kernel"
)

//go:embed peers/kernels.py
var measureKernel string

// kernels are the kernels to compare, and their names in Jupyter.
var kernels = []struct{ title, name string }{{"gonbatch", kernel.Name}, {"GoNB 0.11.5", "gonb"}, {"ipykernel 7", "python3"}}

// kernelMeasures are the columns, in order.
var kernelMeasures = []string{"start", "first cell", "warm cell", "XLA cell", "its CPU time", "first completion", "next completion", "completion in GoMLX"}

// kernelReport is the result of measureKernels.
type kernelReport struct {
	CPU         string      `json:"cpu"`
	LoadAverage string      `json:"load_average_after"`
	Rounds      int         `json:"rounds"`
	Rows        []kernelRow `json:"rows"`
}

// kernelRow has the seconds of one kernel, by the names of the measures.
type kernelRow struct {
	Name string               `json:"name"`
	All  map[string][]float64 `json:"all_seconds"`
}

// measureKernels starts new sessions of each kernel, in turns.
func measureKernels(ctx context.Context, opts options, out io.Writer) (_ kernelReport, err error) {
	report := kernelReport{CPU: cpuModel(), Rounds: opts.rounds}
	root, err := os.Getwd()
	if err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "bench-kernel-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env, err := installKernels(ctx, root, dir)
	if err != nil {
		return report, err
	}
	for _, k := range kernels {
		report.Rows = append(report.Rows, kernelRow{Name: k.title, All: map[string][]float64{}})
	}
	for round := range opts.rounds {
		for i, k := range kernels {
			seconds, err := measureSession(ctx, root, k.name, dir, env)
			if err != nil {
				return report, fmt.Errorf("%s, round %d: %w", k.title, round+1, err)
			}
			for name, value := range seconds {
				report.Rows[i].All[name] = append(report.Rows[i].All[name], value)
			}
			fmt.Fprintf(out, "kernels, round %d: %s\n", round+1, k.title)
		}
	}
	report.LoadAverage = loadAverage()
	return report, nil
}

// installKernels installs the kernels below dir and returns the environment in which clients find
// them.
func installKernels(ctx context.Context, root, dir string) ([]string, error) {
	submit, err := build(ctx, "./cmd/submit", "bench-submit")
	if err != nil {
		return nil, err
	}
	if _, err := kernel.Install(kernel.InstallOptions{DataDir: dir, Program: submit}); err != nil {
		return nil, err
	}
	bin := filepath.Join(root, ".cache", "bin")
	spec, err := json.Marshal(map[string]any{
		"argv": []string{filepath.Join(bin, "gonb"), "--kernel", "{connection_file}"}, "display_name": "GoNB", "language": "go",
	})
	if err != nil {
		return nil, err
	}
	plain := filepath.Join(dir, "kernels", "gonb")
	if err := os.MkdirAll(plain, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(plain, "kernel.json"), spec, 0o644); err != nil {
		return nil, err
	}
	if err := writeModule(root, dir); err != nil {
		return nil, err
	}
	plugins, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CPU, Progress: os.Stderr, Getenv: os.Getenv})
	if err != nil {
		return nil, err
	}
	return append(os.Environ(), rundir.EnvXLAPath+"="+plugins, rundir.EnvXLANoInstall+"=1", "GOFLAGS=-mod=mod", "JUPYTER_DATA_DIR="+dir, rundir.EnvSource+"="+root, "XDG_STATE_HOME="+dir,
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH")), nil
}

// writeModule writes the go.mod and go.sum of a module that requires GoMLX. GoNB needs them,
// because it starts with an empty module.
func writeModule(root, dir string) error {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	text := strings.Replace(string(mod), "module gonbatch", "module session", 1)
	return errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), []byte(text), 0o644), os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644))
}

// measureSession runs one session in a real client.
func measureSession(ctx context.Context, root, name, dir string, env []string) (map[string]float64, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, ".cache", "venv", "bin", "python"), "-c", measureKernel, name, dir)
	cmd.Env = env
	text, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w\n%s", err, exit.Stderr)
		}
		return nil, err
	}
	var seconds map[string]float64
	return seconds, json.Unmarshal(text, &seconds)
}

// kernelMeaning explains the columns.
const kernelMeaning = `Seconds that a client waits: until a new kernel answers; for the session's first cell, and for a
changed cell after it; for a changed cell that runs a GoMLX program on XLA, with its CPU time; for the
first completion in a standard package, for the next one, and for one in GoMLX. A field is empty if
the kernel lacks the feature, or failed to answer ten times. GoNB's cells have a complete go.mod, and
its automatic go get is off.`

func (r kernelReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Kernels\n\n%s\nMedian of %d sessions of each kernel; they take turns. %s; load average at the end %s.\n\n", kernelMeaning, r.Rounds, r.CPU, r.LoadAverage)
	fmt.Fprintf(&b, "| | %s |\n|---%s|\n", strings.Join(kernelMeasures, " | "), strings.Repeat("|--:", len(kernelMeasures)))
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s |", row.Name)
		for _, name := range kernelMeasures {
			if values := row.All[name]; len(values) > 0 { // Python's kernel has no GoMLX.
				fmt.Fprintf(&b, " %.3f s", median(values, func(v float64) float64 { return v }))
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	return b.String()
}
