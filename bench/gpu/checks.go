package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/estimate"
	"gonbatch/submit/report"
)

// check is one, and what it does: its figures are for people.
type check struct {
	name string
	run  func(context.Context) (figures string, err error)
}

// batches are the inputs of a step on one GPU.
var batches = map[string]int{"cnn": 256, "resnet18": 128, "mlp": 256}

// checks are all of them, in their order: later ones use what earlier ones have measured.
func (b *bench) checks() []check {
	all := []check{
		{"one rank, with the key-value store", func(ctx context.Context) (string, error) { return b.start(ctx, 1, b.self, "callbacks") }},
		{"all-reduce, all GPUs", b.sum},
		{"one of 8 ranks, mock NCCL", func(ctx context.Context) (string, error) { return b.start(ctx, 1, b.self, "mock") }},
	}
	for _, n := range strings.Split(b.networks, ",") {
		all = append(all,
			check{n + ", 1 GPU", func(ctx context.Context) (string, error) { return b.one(ctx, n) }},
			check{n + ", compile cache", func(context.Context) (string, error) { return b.compiled(n) }},
			check{n + ", all GPUs", func(ctx context.Context) (string, error) { return b.several(ctx, n) }},
			check{n + ", PyTorch", func(ctx context.Context) (string, error) {
				return b.beside(ctx, n, "torch", "torch.cuda.is_available()", "bench/peers/pytorch_ddp.py", "--best", "--device=cuda", "--model="+n)
			}},
			check{n + ", JAX", func(ctx context.Context) (string, error) {
				if n != "cnn" {
					return "", skipped("bench/peers has the CNN only")
				}
				return b.beside(ctx, n, "jax", "jax.default_backend() == 'gpu'", "bench/peers/jax_spmd.py")
			}},
			check{n + ", forecast", func(ctx context.Context) (string, error) { return b.forecast(ctx, n) }},
		)
	}
	return all
}

// all runs the checks while there is time.
func (b *bench) all(ctx context.Context) (rows []row) {
	for _, c := range b.checks() {
		began := time.Now()
		if !began.Before(b.until) || ctx.Err() != nil {
			rows = append(rows, row{name: c.name, result: "not run", figures: "the time was over"})
			continue
		}
		fmt.Fprintf(os.Stderr, "gpu-check: %s\n", c.name)
		limited, cancel := context.WithDeadline(ctx, b.until)
		text, err := c.run(limited)
		cancel()
		r := row{name: c.name, result: "ok", figures: text, took: time.Since(began)}
		if why := skipped(""); errors.As(err, &why) {
			r.result, r.figures = "skipped", err.Error()
		} else if err != nil {
			r.result, r.figures = "FAILED", strings.TrimPrefix(text+": "+err.Error(), ": ")
		}
		rows = append(rows, r)
	}
	return rows
}

// sum has all GPUs add up.
func (b *bench) sum(ctx context.Context) (string, error) {
	if b.gpus == 1 {
		return "", skipped("there is one GPU")
	}
	out, err := b.start(ctx, b.gpus, b.self, "sum")
	if err == nil && !strings.Contains(out, "the sum is right") {
		err = errors.New("no sum was checked")
	}
	return lastLines(out, 1), err
}

// figures are those of bench/step, and of the peers.
type figures struct {
	MilliSeconds   float64 `json:"ms_per_step"`
	Rate           float64 `json:"images_per_second"`
	Peak           int64   `json:"device_peak_bytes"`
	Limit          int64   `json:"device_limit_bytes"`
	Compiled       int     `json:"compiled"`
	CompileSeconds float64 `json:"compile_seconds"`
	Version        string  `json:"version"`
}

func (f figures) String() string {
	return fmt.Sprintf("%.3g ms, %.0f a second", f.MilliSeconds, f.Rate)
}

// args are those of bench/step and the peers.
func (b *bench) args(network string) []string {
	return []string{fmt.Sprintf("--batch=%d", cmp.Or(b.batch, batches[network])), fmt.Sprintf("--steps=%d", b.steps), "--warm-up=5"}
}

func (b *bench) measure(ctx context.Context, size int, network string) (f figures, err error) {
	out, err := b.start(ctx, size, b.step, append(b.args(network), "--model="+network)...)
	if err == nil {
		err = json.Unmarshal([]byte(lastLines(out, 1)), &f)
	}
	return f, err
}

// one measures a step on one GPU: without compiled programs, then with them.
func (b *bench) one(ctx context.Context, network string) (string, error) {
	if batches[network] == 0 {
		return "", errors.New("-networks has no such network")
	}
	for _, of := range []map[string]figures{b.cold, b.warm} {
		f, err := b.measure(ctx, 1, network)
		if err != nil {
			return "", err
		}
		of[network] = f
	}
	return b.warm[network].String(), nil
}

// measured is the step of a network on one GPU.
func (b *bench) measured(network string) (figures, error) {
	f, ok := b.warm[network]
	if !ok {
		return f, skipped("its step on one GPU was not measured")
	}
	return f, nil
}

// compiled compares the start without compiled programs and with them.
func (b *bench) compiled(network string) (string, error) {
	warm, err := b.measured(network)
	if err != nil {
		return "", err
	}
	cold := b.cold[network]
	text := fmt.Sprintf("%s compiled in %.2f s, then loaded in %.2f s", plural.Of(cold.Compiled, "program"), cold.CompileSeconds, warm.CompileSeconds)
	if cold.Compiled == 0 || warm.Compiled > 0 {
		err = fmt.Errorf("the first run compiled %d, the second %d", cold.Compiled, warm.Compiled)
	}
	return text, err
}

// several measures a step on all GPUs.
func (b *bench) several(ctx context.Context, network string) (string, error) {
	one, err := b.measured(network)
	if err != nil {
		return "", err
	}
	if b.gpus == 1 {
		return "", skipped("there is one GPU")
	}
	f, err := b.measure(ctx, b.gpus, network)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %.0f %% of %d times one GPU's", f, 100*f.Rate/one.Rate/float64(b.gpus), b.gpus), nil
}

// beside measures a peer, if its package is there and computes on GPUs.
func (b *bench) beside(ctx context.Context, network, pkg, onGPU string, script ...string) (string, error) {
	ours, err := b.measured(network)
	if err != nil {
		return "", err
	}
	if _, err := b.peer(ctx, "-c", "import "+pkg+"\nassert "+onGPU+", 'it has no GPU'"); err != nil {
		return "", skipped(fmt.Sprintf("no %s that computes on GPUs for %s: %v", pkg, b.python, err))
	}
	out, err := b.peer(ctx, append(script, b.args(network)...)...)
	if err != nil {
		return "", err
	}
	var f figures
	if err := json.Unmarshal([]byte(lastLines(out, 1)), &f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s: %s; gonbatch is %.2f x", pkg, f.Version, f, f.MilliSeconds/ours.MilliSeconds), nil
}

// tolerance is how far a forecast of memory may be off.
const tolerance = 0.10

// forecast compares what a step was said to take with what it took.
func (b *bench) forecast(ctx context.Context, network string) (string, error) {
	real, err := b.measured(network)
	switch {
	case err != nil:
		return "", err
	case b.unknown != nil:
		return "", skipped(b.unknown.Error())
	}
	shell := submit.Shell{Err: io.Discard, Environ: os.Environ(), Now: time.Now}
	program := estimate.Program{Path: b.step, Cell: rundir.Cell{Name: network, Args: append(b.args(network), "--model="+network)}, Dir: "."}
	said, err := estimate.Ask(ctx, shell, program, forecast.World{Target: b.gpu.Name, Nodes: 1, GPUsPerNode: 1})
	if err != nil {
		return "", err
	}
	return judge(said, real)
}

// judge says how well a forecast agrees with what was measured.
func judge(said report.Forecast, real figures) (string, error) {
	floor, total := 1000*said.Floor.Step, said.Answer.Memory.Total
	text := fmt.Sprintf("at least %.3g ms, took %.3g ms", floor, real.MilliSeconds)
	var errs []error
	if real.MilliSeconds < floor {
		errs = append(errs, errors.New("the step is faster than it can be"))
	}
	if real.Peak == 0 {
		return text + "; the plugin does not say how much memory it took", errors.Join(errs...)
	}
	off := float64(real.Peak-total) / float64(total)
	text = fmt.Sprintf("%.1f MiB said, %.1f MiB taken (%+.0f %%); XLA has %.0f %% of the GPU, %.0f %% said; %s", float64(total)/(1<<20), float64(real.Peak)/(1<<20), 100*off,
		100*float64(real.Limit)/float64(said.Capacity), 100*float64(said.Usable)/float64(said.Capacity), text)
	if math.Abs(off) > tolerance {
		errs = append(errs, fmt.Errorf("the memory is off by more than %.0f %%", 100*tolerance))
	}
	return text, errors.Join(errs...)
}
