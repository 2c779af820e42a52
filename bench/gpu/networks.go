package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/internal/plugin"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/estimate"
	"gonbatch/submit/report"
)

// network is one of bench/step and the peers.
type network struct {
	name string
	// batch is the inputs of a step on one GPU, and few those with which losses are compared.
	batch, few int
}

var networks = []network{{"cnn", 256, 32}, {"resnet18", 128, 8}, {"gpt", 32, 2}, {"mlp", 256, 16}}

// network are the checks of one.
func (b *bench) network(n network) []check {
	step := n.name + steps
	all := []check{
		{step, opens, func(ctx context.Context) (string, error) { return b.one(ctx, n) }},
		{n.name + "/losses", opens, func(ctx context.Context) (string, error) { return b.losses(ctx, n) }},
		{n.name + "/cache", step, func(context.Context) (string, error) { return b.compiled(n.name) }},
		{n.name + "/memory", step, func(context.Context) (string, error) { return b.memory(n) }},
		{n.name + "/gpus", step, func(ctx context.Context) (string, error) { return b.several(ctx, n) }},
	}
	for _, p := range peers {
		all = append(all, check{n.name + "/" + p.name, step, func(ctx context.Context) (string, error) { return b.beside(ctx, n, p) }})
	}
	return all
}

// figures are those of bench/step, and of the peers.
type figures struct {
	MilliSeconds   float64   `json:"ms_per_step"`
	Rate           float64   `json:"images_per_second"`
	Peak           int64     `json:"device_peak_bytes"`
	Limit          int64     `json:"device_limit_bytes"`
	Compiled       int       `json:"compiled"`
	CompileSeconds float64   `json:"compile_seconds"`
	Version        string    `json:"version"`
	Losses         []float64 `json:"losses"`
}

func (f figures) String() string {
	return fmt.Sprintf("%.3g ms, %.0f a second", f.MilliSeconds, f.Rate)
}

// args are those of bench/step and the peers.
func (b *bench) args(n network) []string {
	return []string{fmt.Sprintf("--batch=%d", cmp.Or(b.batch, n.batch)), fmt.Sprintf("--steps=%d", b.steps), "--warm-up=5", "--model=" + n.name}
}

func parse(out string, err error) (f figures, _ error) {
	if err == nil {
		err = json.Unmarshal([]byte(lastLines(out, 1)), &f)
	}
	if err == nil && f.MilliSeconds <= 0 && f.Losses == nil {
		err = fmt.Errorf("its steps took no time: %s", lastLines(out, 1))
	}
	return f, err
}

func (b *bench) measure(ctx context.Context, size int, n network) (figures, error) {
	return parse(b.start(ctx, size, b.kit("step"), b.args(n)...))
}

// one measures a step on one GPU: without compiled programs, then with them.
func (b *bench) one(ctx context.Context, n network) (string, error) {
	for _, of := range []map[string]figures{b.cold, b.warm} {
		f, err := b.measure(ctx, 1, n)
		if err != nil {
			return "", err
		}
		of[n.name] = f
	}
	f := b.warm[n.name]
	text := fmt.Sprintf("%s, a batch of %d", f, cmp.Or(b.batch, n.batch))
	if f.Peak > 0 {
		text += fmt.Sprintf("; %.1f MiB of the GPU", float64(f.Peak)/(1<<20))
	}
	return text, nil
}

// compiled compares the start without compiled programs and with them.
func (b *bench) compiled(network string) (string, error) {
	cold, warm := b.cold[network], b.warm[network]
	text := fmt.Sprintf("%s compiled in %.2f s, then loaded in %.2f s", plural.Of(cold.Compiled, "program"), cold.CompileSeconds, warm.CompileSeconds)
	if cold.Compiled == 0 || warm.Compiled > 0 {
		return text, fmt.Errorf("the first run compiled %d, the second %d", cold.Compiled, warm.Compiled)
	}
	return text, nil
}

// lossSteps is how many losses are compared with those on the CPU.
const lossSteps = 20

// lossesOf takes steps with few inputs.
func lossesOf(n network) []string {
	return []string{"--losses", fmt.Sprintf("--batch=%d", n.few), fmt.Sprintf("--steps=%d", lossSteps-1), "--warm-up=1", "--model=" + n.name}
}

// expectedFile has the losses on the CPU, by network: expected writes it where the kit is made.
const expectedFile = "losses.json"

// expected prints the losses on this machine's CPU.
func expected(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b := &bench{self: self}
	all := map[string][]float64{}
	for _, n := range networks {
		cmd := exec.CommandContext(ctx, b.kit("step"), lossesOf(n)...)
		cmd.Env, cmd.Stderr = append(inherited(), rundir.EnvPlatform+"="+plugin.CPU, rundir.EnvDevices+"=1"), os.Stderr
		out, err := cmd.Output()
		f, err := parse(string(out), err)
		if err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
		all[n.name] = f.Losses
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// read reads what a part has written where the kit was made.
func (b *bench) read(file string, to any) error {
	text, err := os.ReadFile(b.kit(file))
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	return err
}

// exact are variables with which products of float32 numbers keep all of their 24 bits, as on CPUs.
// By default they are rounded to 11 (TF32).
var exact = []string{"NVIDIA_TF32_OVERRIDE=0"}

// How far a loss may be from that on the CPU, relative to it. A network that has learned its few
// inputs by heart has a loss near 0, of which leastLoss is the least that counts.
const (
	exactly   = 1e-3
	roughly   = 3e-2
	leastLoss = 0.1
)

// losses compares the losses of the first steps with those on the CPU, with the same seed and
// inputs.
func (b *bench) losses(ctx context.Context, n network) (string, error) {
	var want map[string][]float64
	if err := b.read(expectedFile, &want); err != nil {
		return "", err
	}
	var said []string
	var errs []error
	for _, way := range []struct {
		name  string
		env   []string
		limit float64
	}{{"float32", exact, exactly}, {"by default", nil, roughly}} {
		f, err := parse(b.startWith(ctx, way.env, 1, b.kit("step"), lossesOf(n)...))
		if err != nil {
			return strings.Join(said, "; "), err
		}
		off, err := apart(f.Losses, want[n.name])
		if err == nil {
			said = append(said, fmt.Sprintf("%s: from %.5f to %.5f, at most %.1g apart from the CPU", way.name, f.Losses[0], f.Losses[len(f.Losses)-1], off))
		}
		if err == nil && !(off <= way.limit) {
			err = fmt.Errorf("%s: more than %g apart: on the CPU %.5f, here %.5f", way.name, way.limit, want[n.name], f.Losses)
		}
		errs = append(errs, err)
	}
	return strings.Join(said, "; "), errors.Join(errs...)
}

// apart is the largest distance between two lists of losses, relative to that on the CPU or to the
// least that counts.
func apart(got, want []float64) (most float64, err error) {
	if len(got) != len(want) || len(want) == 0 {
		return 0, fmt.Errorf("%d losses, want %d: the kit's step and its %s don't fit", len(got), len(want), expectedFile)
	}
	for i, w := range want {
		most = max(most, math.Abs(got[i]-w)/max(math.Abs(w), leastLoss)) // max is NaN if one is.
	}
	return most, nil
}

// several measures a step on all GPUs.
func (b *bench) several(ctx context.Context, n network) (string, error) {
	if b.gpus == 1 {
		return "", skipped("there is one GPU")
	}
	f, err := b.measure(ctx, b.gpus, n)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %.0f %% of %d times one GPU's", f, 100*f.Rate/b.warm[n.name].Rate/float64(b.gpus), b.gpus), nil
}

// peer is another product's program for the same step.
type peer struct {
	name, pkg string
	onGPU     string // onGPU is true in Python if the package computes on GPUs.
	script    []string
}

var peers = []peer{
	{"torch", "torch", torchOnGPU, []string{"pytorch_ddp.py", "--device=cuda"}},
	{"torch-best", "torch", torchOnGPU, []string{"pytorch_ddp.py", "--device=cuda", "--best"}},
	{"torch-compile", "torch", torchOnGPU, []string{"pytorch_ddp.py", "--device=cuda", "--best", "--compile"}},
	{"jax", "jax", "jax.default_backend() == 'gpu'", []string{"jax_spmd.py"}},
}

const torchOnGPU = "torch.cuda.is_available()"

// beside measures a peer, if its package is there and computes on GPUs.
func (b *bench) beside(ctx context.Context, n network, p peer) (string, error) {
	if why := b.missing(ctx, p); ctx.Err() != nil {
		return "", why
	} else if why != nil {
		return "", skipped(why.Error())
	}
	cmd := exec.Command(b.python, append([]string{b.kit("peers", p.script[0])}, append(p.script[1:], b.args(n)...)...)...)
	cmd.Env = b.peerEnviron()
	f, err := parse(b.output(ctx, cmd))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s: %s; gonbatch is %.2f x as fast", p.pkg, f.Version, f, f.MilliSeconds/b.warm[n.name].MilliSeconds), nil
}

// missing is why there is no peer.
func (b *bench) missing(ctx context.Context, p peer) error {
	if why, known := b.peers[p.pkg]; known {
		return why
	}
	cmd := exec.Command(b.python, "-c", "import "+p.pkg+"\nassert "+p.onGPU+", 'it has no GPU'")
	cmd.Env = b.peerEnviron()
	out, err := combined(ctx, cmd)
	if err != nil {
		err = fmt.Errorf("no %s that computes on GPUs for -python %s: %w: %s", p.pkg, b.python, err, lastLines(out, 1))
	}
	if ctx.Err() == nil {
		b.peers[p.pkg] = err
	}
	return err
}

// peerEnviron is that of a program in Python, on the first GPU.
func (b *bench) peerEnviron() []string {
	return append(inherited(), "CUDA_VISIBLE_DEVICES="+b.first, "JAX_PLATFORMS=cuda", "WORLD_SIZE=1", "RANK=0")
}

// tolerance is how far a forecast of memory may be off.
const tolerance = 0.10

// forecastsFile has the forecasts of a step by network and GPU: forecasts writes it where the kit
// is made, because XLA's compiler for a GPU that isn't there needs a network once.
const forecastsFile = "forecasts.json"

// foreseen are the GPUs of the forecasts.
var foreseen = []string{"a100-40", "a100-80", "h100", "h200"}

// forecasts prints those of a step of each network with its default batch.
func forecasts(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b := &bench{self: self, options: options{steps: 1}}
	shell := submit.Shell{Err: os.Stderr, Environ: inherited(), Now: time.Now}
	all := map[string]map[string]report.Forecast{}
	for _, n := range networks {
		all[n.name] = map[string]report.Forecast{}
		program := estimate.Program{Path: b.kit("step"), Cell: rundir.Cell{Name: n.name, Args: b.args(n)}, Dir: "."}
		for _, target := range foreseen {
			if all[n.name][target], err = estimate.Ask(ctx, shell, program, forecast.World{Target: target, Nodes: 1, GPUsPerNode: 1}); err != nil {
				return fmt.Errorf("%s on %s: %w", n.name, target, err)
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// memory compares what a step was said to take with what it took.
func (b *bench) memory(n network) (string, error) {
	switch {
	case b.unknown != nil:
		return "", skipped(b.unknown.Error())
	case b.batch > 0 && b.batch != n.batch:
		return "", skipped(fmt.Sprintf("the kit has the forecast of a batch of %d", n.batch))
	}
	var all map[string]map[string]report.Forecast
	if err := b.read(forecastsFile, &all); err != nil {
		return "", err
	}
	said, known := all[n.name][b.gpu.Name]
	if !known {
		return "", skipped(fmt.Sprintf("the kit has no forecast for %s, only for %s", b.gpu.Full, strings.Join(foreseen, ", ")))
	}
	return judge(said, b.warm[n.name])
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
