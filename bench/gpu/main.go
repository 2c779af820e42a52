// Command gpu checks on a machine with GPUs what can't be checked without: XLA's clients with our
// key-value store, collectives, training steps next to PyTorch's and JAX's, the forecast of a
// step's memory next to its real peak, the compile cache, notebooks that are killed and resumed,
// and the test suites that have only met GPUs played by a test plugin.
//
// It needs no Go, no compiler, no network and no root: "make gpu-kit" puts it into a folder, with
// all that it runs and a script, run.sh, that starts it. What isn't there is skipped, with the
// reason: several GPUs, PyTorch, JAX, figures of the GPU.
//
// Each result is printed, and written to a file, as soon as it is known, the most important first:
// a run that is cut off has still told what it knew. A table comes last.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/internal/plural"
)

type options struct {
	target, python string
	only           string
	steps, batch   int
	limit, total   time.Duration
	out            string
	install, quick bool
}

func main() {
	var o options
	flag.StringVar(&o.target, "target", "", "the GPU: "+strings.Join(forecast.Names(), ", ")+" (default: by the driver's name for it)")
	flag.StringVar(&o.python, "python", "", "Python with PyTorch and JAX for CUDA (default: python3 of the PATH)")
	flag.StringVar(&o.only, "only", "", "only these checks, with those that they need: a,b,cnn (-only help lists them)")
	flag.IntVar(&o.batch, "batch", 0, "inputs of a step on each GPU (default: by network)")
	flag.IntVar(&o.steps, "steps", 100, "steps of a measurement")
	flag.BoolVar(&o.quick, "quick", false, "only see that everything runs: 3 steps of 8 inputs, notebooks of 60 updates, one test of each suite")
	flag.DurationVar(&o.limit, "limit", 3*time.Minute, "time for each check: one that takes longer is ended, and shows where it is")
	flag.DurationVar(&o.total, "total", 14*time.Minute, "time for all: checks that would begin later are not run")
	flag.StringVar(&o.out, "out", "gpu-check", "folder for the results and the whole output of each check")
	flag.BoolVar(&o.install, "install", false, "download XLA's plugin for CUDA and NVIDIA's libraries (2.3 GB) if they aren't there")
	flag.Parse()
	if o.quick {
		o.steps, o.batch = 3, 8
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // The results are in a file, whoever reads.
	if err := run(ctx, o, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

// run runs all checks, or the part of one that a process of its own is for.
func run(ctx context.Context, o options, args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == partArg && parts[args[1]] != nil:
		return parts[args[1]](ctx)
	case len(args) > 0:
		return fmt.Errorf("%q: there are no arguments, only flags: see -help", args)
	case o.steps < 1 || o.batch < 0:
		return fmt.Errorf("-steps %d -batch %d: take at least one step, of at least one input", o.steps, o.batch)
	case min(o.limit, o.total) <= 0:
		return fmt.Errorf("-limit %s -total %s: give each some time", o.limit, o.total)
	}
	if o.target != "" {
		if _, err := forecast.Find(o.target); err != nil {
			return fmt.Errorf("-target: %w", err)
		}
	}
	b := &bench{options: o, cold: map[string]figures{}, warm: map[string]figures{}, peers: map[string]error{}}
	all, err := chosen(b.checks(), o.only)
	if err != nil {
		return err
	}
	if o.only == "help" {
		for _, c := range all {
			fmt.Fprintln(out, c.name)
		}
		return nil
	}
	defer b.close()
	if err := b.prepare(ctx, out); err != nil {
		return err
	}
	b.until = time.Now().Add(o.total)
	count := b.all(ctx, all)
	switch {
	case count[failed] > 0:
		return errors.New(plural.Of(count[failed], "check") + " failed")
	case count[notRun] > 0:
		return fmt.Errorf("%s did not run", plural.Of(count[notRun], "check"))
	case count[ok] == 0:
		return errors.New("nothing was checked")
	}
	return nil
}

// partArg begins the arguments of a process that does a part of a check.
const partArg = "part"
