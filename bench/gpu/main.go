// Command gpu checks on a machine with GPUs what can't be checked without: XLA's clients with our
// key-value store, all-reduces between all GPUs, the time of a training step next to PyTorch's and
// JAX's, the forecast of a step's memory next to its real peak, and the compile cache. It prints a
// table, and fails if a check has failed. scripts/gpu-check.sh starts it.
//
// What isn't there is skipped, with the reason: more GPUs than one, PyTorch, JAX, figures of the
// GPU.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/internal/plural"
)

type options struct {
	target, python string
	networks       string
	steps, batch   int
	limit          time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.target, "target", "", "the GPU: "+strings.Join(forecast.Names(), ", ")+" (default: by the driver's name for it)")
	flag.StringVar(&o.python, "python", filepath.Join(".cache", "bench-venv", "bin", "python"), "Python with PyTorch and JAX for CUDA")
	flag.StringVar(&o.networks, "networks", "cnn,resnet18,mlp", "networks of bench/step")
	flag.IntVar(&o.batch, "batch", 0, "inputs of a step on each GPU (default: 256 of cnn and mlp, 128 of resnet18)")
	flag.IntVar(&o.steps, "steps", 100, "steps of a measurement")
	flag.DurationVar(&o.limit, "limit", 8*time.Minute, "time for all checks, after the installation: those that would begin later are not run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, flag.Args(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gpu-check:", err)
		os.Exit(1)
	}
}

// run runs all checks, or the part of one that a process of its own is for.
func run(ctx context.Context, o options, args []string, out io.Writer) error {
	switch {
	case len(args) == 1 && ranks[args[0]] != nil:
		return ranks[args[0]](ctx)
	case len(args) > 0:
		return fmt.Errorf("%q: there are no arguments", args)
	case o.steps < 1:
		return fmt.Errorf("-steps %d: take at least one step", o.steps)
	}
	b, err := prepare(ctx, o)
	if err != nil {
		return err
	}
	defer os.RemoveAll(b.cache) //nolint:errcheck // a temporary folder
	failed := 0
	for _, r := range b.all(ctx) {
		if r.result == "FAILED" {
			failed++
		}
		b.table.add(r)
	}
	if _, err := fmt.Fprint(out, b.table); err != nil || failed == 0 {
		return err
	}
	return errors.New(plural.Of(failed, "check") + " failed")
}
