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
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

type options struct {
	rounds, steps, batch int
	only, out, notebook  string
	foreign, network     string
	picture, osu         string
}

func main() {
	var opts options
	flag.IntVar(&opts.rounds, "rounds", 5, "how often each is measured")
	flag.IntVar(&opts.steps, "steps", 100, "training steps of one measurement, after a warm-up; fewer of large networks")
	flag.IntVar(&opts.batch, "batch", 64, "images a rank, of the trainer")
	flag.StringVar(&opts.only, "only", "", "measure only this: "+strings.Join(measureNames(), ", "))
	flag.StringVar(&opts.network, "network", "", "of the training steps and the inference, measure only this: "+strings.Join(networkNames(), ", "))
	flag.StringVar(&opts.out, "out", filepath.Join("bench", "results"), "folder of the results")
	flag.StringVar(&opts.notebook, "notebook", filepath.Join("notebooks", "mnist.ipynb"), "notebook to submit")
	flag.StringVar(&opts.picture, "picture", "", "SVG file for the picture of scaling; default: in the folder of the results")
	flag.StringVar(&opts.osu, "osu", "", "program osu_allreduce of the OSU micro-benchmarks, to compare the all-reduces with; built with this machine's Open MPI")
	flag.StringVar(&opts.foreign, "foreign", "", "notebook to check; default: one in GoMLX's module")
	flag.Parse()
	// What a measurement has created is removed after both signals.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, opts, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measures are the things to measure, in the order of the results.
var measures = []struct {
	name   string
	run    func(context.Context, options, io.Writer) (table, error)
	trains bool // Its time depends on what computes.
}{
	{"step", shown(measureSteps), true}, {"trainer", shown(measureTrainers), true}, {"submit", shown(measureSubmissions), false},
	{"checkpoint", shown(measureCheckpoints), true}, {"export", shown(measureExports), false}, {"check", shown(measureChecks), false},
	{"kernel", shown(measureKernels), false}, {"compile", shown(measureCompilations), true}, {"loader", shown(measureLoaders), true},
	{"allreduce", shown(measureAllReduces), false}, {"control", shown(measureControl), false},
	{"nodes", shown(measureNodes), true}, {"scaling", shown(measureScaling), true},
	{"inference", shown(measureInferences), true},
}

// shown makes a measure return its report as a table.
func shown[T table](measure func(context.Context, options, io.Writer) (T, error)) func(context.Context, options, io.Writer) (table, error) {
	return func(ctx context.Context, o options, w io.Writer) (table, error) { return measure(ctx, o, w) }
}

func measureNames() (names []string) {
	for _, m := range measures {
		names = append(names, m.name)
	}
	return names
}

func (o options) validate() error {
	switch {
	case o.rounds < 1:
		return fmt.Errorf("-rounds %d: measure at least once", o.rounds)
	case o.steps < 1:
		return fmt.Errorf("-steps %d: take at least one step", o.steps)
	case o.batch < 1:
		return fmt.Errorf("-batch %d: a rank needs at least one image", o.batch)
	case o.only != "" && !slices.Contains(measureNames(), o.only):
		return fmt.Errorf("-only %s: want one of %s", o.only, strings.Join(measureNames(), ", "))
	case o.network != "" && !slices.Contains(networkNames(), o.network):
		return fmt.Errorf("-network %s: want one of %s", o.network, strings.Join(networkNames(), ", "))
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
	kernels, err := useOneDNN()
	if err != nil {
		return err
	}
	for _, m := range measures {
		if opts.only != "" && opts.only != m.name {
			continue
		}
		report, err := m.run(ctx, opts, out)
		if err != nil {
			return err
		}
		text := report.markdown()
		if m.trains {
			text = headed(text, kernels)
		}
		if err := write(opts.out, m.name, report, text, out); err != nil {
			return err
		}
	}
	return nil
}

// table is a report that can be shown.
type table interface{ markdown() string }

// write writes NAME.md and NAME.json, and shows the former.
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

// cpuModel returns the name of this machine's processor.
func cpuModel() string {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			return cpus[0].ModelName
		}
	}
	return "unknown"
}

// loadAverage returns the load average of the last minute. Figures that are measured on a busy
// machine are worth little.
func loadAverage() string {
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if load, err := fs.LoadAvg(); err == nil {
			return fmt.Sprint(load.Load1)
		}
	}
	return "unknown"
}
