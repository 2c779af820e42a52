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
	"time"

	"gonbatch/internal/compilecache"
	"gonbatch/internal/rundir"
	"gonbatch/kernel"
)

//go:embed peers/cells.py
var measureCells string

// The cases of the compile cache, which are the columns of the table.
const (
	withoutCache = "without"
	emptyCache   = "empty"
	fullCache    = "full"
)

// What is measured with and without the compile cache.
const (
	xlaPart     = "XLA, for the programs of the first step"
	newProcess  = "a new process, to its first step"
	processTime = "its CPU time"
	localRun    = "`submit --local`, to the first step"
	changedCell = "a changed cell of the kernel with one step"
	sameCell    = "the same cell again"
	readingCell = "a cell that reads a kept model of 100 MB"
	unreadCell  = "the same cell with an empty model"
)

// compileReport is the result of measureCompilations.
type compileReport struct {
	CPU         string       `json:"cpu"`
	LoadAverage string       `json:"load_average_before"`
	Rounds      int          `json:"rounds"`
	Rows        []compileRow `json:"rows"`
}

// compileRow has the seconds of one measure, for each case.
type compileRow struct {
	Name string               `json:"name"`
	All  map[string][]float64 `json:"all_seconds"`
}

// compileBench has the programs that measureCompilations runs, all on one core.
type compileBench struct {
	report                          *compileReport
	first, submit, python, notebook string
	core                            int
	dir                             string
	env                             []string
}

// measureCompilations times the first step of the MNIST network without a compile cache, with an
// empty one and with a full one.
func measureCompilations(ctx context.Context, opts options, out io.Writer) (_ compileReport, err error) {
	report := compileReport{CPU: cpuModel(), LoadAverage: loadAverage(), Rounds: opts.rounds}
	for _, name := range []string{xlaPart, newProcess, processTime, localRun, changedCell, sameCell, readingCell, unreadCell} {
		report.Rows = append(report.Rows, compileRow{name, map[string][]float64{}})
	}
	dir, err := os.MkdirTemp("", "bench-compile-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b, err := newCompileBench(ctx, &report, opts, dir)
	if err != nil {
		return report, err
	}
	if _, err := b.measureLocal(ctx, compilecache.Off); err != nil { // Compiles the notebook.
		return report, err
	}
	for round := range opts.rounds {
		if err := b.measure(ctx, round); err != nil {
			return report, fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(out, "compile, round %d\n", round+1)
	}
	return report, nil
}

func newCompileBench(ctx context.Context, report *compileReport, opts options, dir string) (b compileBench, err error) {
	b = compileBench{report: report, dir: dir}
	first, firstErr := build(ctx, "./bench/first", "bench-first")
	submit, submitErr := build(ctx, "./cmd/submit", "bench-submit")
	notebook, pathErr := filepath.Abs(opts.notebook)
	root, rootErr := os.Getwd()
	available, coresErr := cores()
	if err := errors.Join(firstErr, submitErr, pathErr, rootErr, coresErr); err != nil {
		return b, err
	}
	if _, err := kernel.Install(kernel.InstallOptions{DataDir: dir, Program: submit}); err != nil {
		return b, err
	}
	b.first, b.submit, b.notebook, b.core = first, submit, notebook, available[0]
	b.python = filepath.Join(root, ".cache", "venv", "bin", "python")
	b.env = append(os.Environ(), "JUPYTER_DATA_DIR="+dir, "XDG_STATE_HOME="+dir, rundir.EnvSource+"="+root, rundir.EnvDevices+"=1", "TRAINER_MAX_STEPS=1",
		"PATH="+filepath.Join(root, ".cache", "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	return b, nil
}

// measure runs one round: each measure for each case.
func (b compileBench) measure(ctx context.Context, round int) error {
	folder := func(name string) string { return filepath.Join(b.dir, fmt.Sprintf("%s-%d", name, round)) }
	for _, c := range []struct{ name, local, process string }{
		{withoutCache, compilecache.Off, compilecache.Off}, {emptyCache, folder("local"), folder("process")}, {fullCache, folder("local"), folder("process")},
	} {
		if err := b.measureProcess(ctx, c.name, c.process); err != nil {
			return err
		}
		seconds, err := b.measureLocal(ctx, c.local)
		if err != nil {
			return err
		}
		b.add(localRun, c.name, seconds)
	}
	if err := b.measureKernel(ctx, withoutCache, compilecache.Off); err != nil {
		return err
	}
	return b.measureKernel(ctx, fullCache, folder("kernel"))
}

func (b compileBench) add(name, column string, seconds float64) {
	for _, row := range b.report.Rows {
		if row.Name == name {
			row.All[column] = append(row.All[column], seconds)
		}
	}
}

// command returns a command that runs on one core, with a compile cache.
func (b compileBench) command(ctx context.Context, cache string, program ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "taskset", append([]string{"-c", fmt.Sprint(b.core)}, program...)...)
	cmd.Dir, cmd.Env = b.dir, append(b.env[:len(b.env):len(b.env)], rundir.EnvCompileCache+"="+cache)
	return cmd
}

// output runs a command and decodes the JSON that it prints.
func output(cmd *exec.Cmd, to any) error {
	text, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", cmd.Args[3], err)
	}
	return json.Unmarshal(text, to)
}

// measureProcess runs the program that takes one step.
func (b compileBench) measureProcess(ctx context.Context, column, cache string) error {
	var m struct {
		Seconds float64 `json:"seconds"`
		Compile float64 `json:"compile_seconds"`
	}
	cmd := b.command(ctx, cache, b.first)
	if err := output(cmd, &m); err != nil {
		return err
	}
	b.add(xlaPart, column, m.Compile)
	b.add(newProcess, column, m.Seconds)
	b.add(processTime, column, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds())
	return nil
}

// measureKernel runs cells in a new session. All but the first cell find a full cache.
func (b compileBench) measureKernel(ctx context.Context, column, cache string) error {
	var m struct{ Changed, Same, Read, Unread float64 }
	if err := output(b.command(ctx, cache, b.python, "-c", measureCells, b.notebook), &m); err != nil {
		return err
	}
	b.add(changedCell, column, m.Changed)
	b.add(sameCell, column, m.Same)
	b.add(readingCell, column, m.Read)
	b.add(unreadCell, column, m.Unread)
	return nil
}

// measureLocal runs the notebook to its end, and returns how long it took until its training had
// taken a step.
func (b compileBench) measureLocal(ctx context.Context, cache string) (seconds float64, err error) {
	runs, err := os.MkdirTemp(b.dir, "runs-")
	if err != nil {
		return 0, err
	}
	cmd := b.command(ctx, cache, b.submit, "--local", "--devices=1", "--run-root="+runs, b.notebook)
	var text strings.Builder
	cmd.Stdout, cmd.Stderr = &text, &text
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for seconds == 0 {
		select {
		case err := <-done:
			return 0, fmt.Errorf("submit --local ended without a step: %w\n%s", err, &text)
		case <-time.After(time.Millisecond):
		}
		if found, err := rundir.List(runs); err == nil && len(found) == 1 && rundir.ReadProgress(found[0]) > 0 {
			seconds = time.Since(start).Seconds()
		}
	}
	if err := <-done; err != nil {
		return 0, fmt.Errorf("submit --local: %w\n%s", err, &text)
	}
	return seconds, nil
}

// compileMeaning explains the rows.
const compileMeaning = `Seconds on one core, for the MNIST network, until: XLA has the programs of the first training step;
a new process has run that step, with its CPU time; "submit --local" of an unchanged notebook has
run it; and a cell in a warm session of the kernel has run it. The compile cache is turned off, a
new folder, or a folder that an earlier process has filled. The last two rows compile nothing: their
difference is the time to read a kept model, which must be less than 0.1 s.`

func (r compileReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Compilation\n\n%s\nMedian of %d rounds. %s, load average before: %s.\n\n", compileMeaning, r.Rounds, r.CPU, r.LoadAverage)
	b.WriteString("| | without a cache | an empty one | a full one | |\n|---|--:|--:|--:|--:|\n")
	for _, row := range r.Rows {
		fmt.Fprintf(&b, "| %s |", row.Name)
		for _, column := range []string{withoutCache, emptyCache, fullCache} {
			if len(row.All[column]) > 0 {
				fmt.Fprintf(&b, " %.2f s", row.median(column))
			}
			b.WriteString(" |")
		}
		fmt.Fprintf(&b, " %.1f x |\n", row.median(withoutCache)/row.median(fullCache))
	}
	return b.String()
}

func (r compileRow) median(column string) float64 {
	return median(r.All[column], func(v float64) float64 { return v })
}
