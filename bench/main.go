package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"github.com/prometheus/procfs"
)

type options struct {
	rounds, steps, batch int
	only, out, notebook  string
}

func main() {
	var opts options
	flag.IntVar(&opts.rounds, "rounds", 5, "how often each is measured")
	flag.IntVar(&opts.steps, "steps", 100, "training steps of one measurement, after a warm-up")
	flag.IntVar(&opts.batch, "batch", 64, "images a rank")
	flag.StringVar(&opts.only, "only", "", "measure only this: step, trainer, submit, checkpoint or export")
	flag.StringVar(&opts.out, "out", filepath.Join("bench", "results"), "folder of the results")
	flag.StringVar(&opts.notebook, "notebook", filepath.Join("notebooks", "mnist.ipynb"), "notebook to submit")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, opts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func (o options) validate() error {
	switch {
	case o.rounds < 1:
		return fmt.Errorf("-rounds %d: measure at least once", o.rounds)
	case o.steps < 1:
		return fmt.Errorf("-steps %d: take at least one step", o.steps)
	case o.batch < 1:
		return fmt.Errorf("-batch %d: a rank needs at least one image", o.batch)
	case o.only != "" && !slices.Contains([]string{"step", "trainer", "submit", "checkpoint", "export"}, o.only):
		return fmt.Errorf("-only %s: want step, trainer, submit, checkpoint or export", o.only)
	}
	_, err := os.Stat("go.mod")
	if err != nil {
		return errors.New("no go.mod here: run it in the root of the source tree")
	}
	return nil
}

func run(ctx context.Context, opts options, out io.Writer) error {
	if err := opts.validate(); err != nil {
		return err
	}
	if err := os.MkdirAll(opts.out, 0o755); err != nil {
		return err
	}
	measures := []struct {
		name string
		run  func(context.Context, options, io.Writer) (table, error)
	}{
		{"step", func(ctx context.Context, o options, w io.Writer) (table, error) { return measureSteps(ctx, o, w) }},
		{"trainer", func(ctx context.Context, o options, w io.Writer) (table, error) { return measureTrainers(ctx, o, w) }},
		{"submit", func(ctx context.Context, o options, w io.Writer) (table, error) { return measureSubmissions(ctx, o, w) }},
		{"checkpoint", func(ctx context.Context, o options, w io.Writer) (table, error) { return measureCheckpoints(ctx, o, w) }},
		{"export", func(ctx context.Context, o options, w io.Writer) (table, error) { return measureExports(ctx, o, w) }},
	}
	for _, m := range measures {
		if opts.only != "" && opts.only != m.name {
			continue
		}
		report, err := m.run(ctx, opts, out)
		if err != nil {
			return err
		}
		if err := write(opts.out, m.name, report, report.markdown(), out); err != nil {
			return err
		}
	}
	return nil
}

// table is a report that can be shown.
type table interface{ markdown() string }

// write writes NAME.md and NAME.json and shows the former.
func write(dir, name string, report any, markdown string, out io.Writer) error {
	text, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", markdown)
	return errors.Join(
		os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644),
		os.WriteFile(filepath.Join(dir, name+".md"), []byte(markdown), 0o644))
}

// cpuModel is the name of this machine's processor.
func cpuModel() string {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			return cpus[0].ModelName
		}
	}
	return "unknown"
}

// loadAverage is how many programs ran in the last minute: figures taken beside other work are
// worth little.
func loadAverage() string {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if load, err := fs.LoadAvg(); err == nil {
			return fmt.Sprint(load.Load1)
		}
	}
	return "unknown"
}
