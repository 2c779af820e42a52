package distributed

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed/aot"
	"gonbatch/distributed/pjrt"
	"gonbatch/internal/forecast"
	"gonbatch/internal/plugin"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// forecaster ends this process at its first training step, and records what the step would take on
// GPUs that this machine doesn't have.
type forecaster struct {
	path      string // The file of the question.
	question  forecast.Question
	answer    forecast.Answer
	gpu       forecast.GPU
	compiler  string          // The folder with XLA's compiler for GPUs.
	store     *model.Store    // The model of the step that is being built.
	known     map[string]bool // Its variables before the optimizer created its own.
	optimizes atomic.Bool     // Reports whether an optimizer of the world has built its part of a step.
	divides   bool            // Reports whether the weights are divided: see imagineDevices.
	rows      int             // The number of parts of a divided weight.
	preparing bool            // Reports whether programs before the step are compiled.
	log       io.Writer
	exit      func(code int)
}

// pretend makes this process, which runs alone, rank 0 of a world whose other ranks don't exist, if
// a forecast was requested.
func (w *World) pretend(ctx context.Context, c Config) error {
	path := c.Getenv(rundir.EnvForecast)
	if path == "" {
		return nil
	}
	f := &forecaster{path: path, log: c.Log, exit: os.Exit}
	if err := rundir.ReadJSON(path, &f.question); err != nil {
		return fmt.Errorf("%s: %w", rundir.EnvForecast, err)
	}
	if err := f.check(w); err != nil {
		return fmt.Errorf("%s=%s: %w", rundir.EnvForecast, path, err)
	}
	var err error
	if f.compiler, err = plugin.EnsureCompiler(ctx, plugin.Options{Progress: c.Log, Getenv: c.Getenv}); err != nil {
		return err
	}
	ranks := f.question.World.Ranks()
	if err := pjrt.Pretend(w.platform, pjrt.Pretence{Ranks: ranks, Take: f.take, Updates: f.updates}); err != nil {
		return err
	}
	forecast.ForGPU.Store(true)
	w.forecaster = f
	w.environment.Size = ranks
	w.peers = absent{ranks: ranks}
	return nil
}

func (f *forecaster) check(w *World) (err error) {
	world := f.question.World
	if f.gpu, err = forecast.Find(world.Target); err != nil {
		return err
	}
	switch {
	case world.Nodes < 1 || world.GPUsPerNode < 1:
		return fmt.Errorf("%s with %s: both must be at least 1", plural.Of(world.Nodes, "node"), plural.Of(world.GPUsPerNode, "GPU"))
	case w.Size() != 1 || w.platform != plugin.CPU || w.devices != 1:
		return fmt.Errorf("this is %s, but a forecast needs a single process with one CPU device", w)
	}
	return nil
}

// absent is the communicator of a world whose other ranks don't exist. It assumes that they do the
// same as this one.
type absent struct {
	alone
	ranks int
}

func (a absent) String() string { return plural.Of(a.ranks-1, "imaginary rank") }

func (a absent) AllReduce(values []float64) error {
	for i := range values {
		values[i] *= float64(a.ranks)
	}
	return nil
}

func (a absent) AllGather(data []byte) ([][]byte, error) {
	return slices.Repeat([][]byte{data}, a.ranks), nil
}

// isAlone reports whether there are no ranks to reduce with. It is false in a forecast, which finds
// the training step by its all-reduce, even with one rank, unless weights are divided.
func (w *World) isAlone() bool {
	return w.Size() == 1 && (w.forecaster == nil || w.forecaster.divides)
}

// batchSize returns the batch size of the forecast, or the given one if the forecast sets none.
func (f *forecaster) batchSize(given int) int {
	if f == nil || f.question.Batch == 0 {
		return given
	}
	return f.question.Batch
}

// begins notes the loader whose batches come next: the step's are those of the last one.
func (f *forecaster) begins(batchSize, examples int) {
	if f != nil {
		f.answer.Batch, f.answer.Examples = batchSize, examples
	}
}

// sees records the model of the step that is being built.
func (f *forecaster) sees(store *model.Store) {
	if f == nil || f.store == store { // A graph that is built twice has the optimizer's variables then.
		return
	}
	f.optimizes.Store(true)
	f.store, f.known = store, map[string]bool{}
	for v := range store.IterVariables() {
		f.known[v.Path()] = true
	}
}

// take answers the question with the first training step and ends the process.
func (f *forecaster) take(step pjrt.Step) error {
	if f.store == nil {
		return fmt.Errorf("distributed: a forecast can't handle an all-reduce outside a training step: average gradients with World.Optimizer or the trainer")
	}
	if err := f.compile(step); err != nil {
		f.answer.Error = err.Error()
	}
	if err := f.reply(); err != nil {
		return err
	}
	fmt.Fprintf(f.log, "gonbatch: the forecast for %s is done; the program ends at its first training step\n", f.question.World)
	f.exit(0)
	return nil
}

// reply puts the answer next to the question.
func (f *forecaster) reply() error {
	f.question.Answer = &f.answer
	if err := rundir.WriteJSON(f.path, f.question); err != nil {
		return fmt.Errorf("distributed: %w", err)
	}
	return nil
}

// updates ends a process that trains, but not by the world's optimizer: it would continue to the
// end of its training.
func (f *forecaster) updates(program string, times int) {
	limit := f.question.PlainSteps
	if limit == 0 || times < limit || f.optimizes.Load() {
		return
	}
	f.answer.Error = fmt.Sprintf("the program has changed variables %d times with %q, and has not averaged gradients: train with package trainer or World.Optimizer; "+
		"if distributed training comes later, increase --plain-steps", times, program)
	if err := f.reply(); err != nil {
		fmt.Fprintln(f.log, "gonbatch:", err)
	}
	f.exit(0)
}

func (f *forecaster) compile(step pjrt.Step) error {
	compiler, err := aot.Open(f.compiler)
	if err != nil {
		return err
	}
	fmt.Fprintf(f.log, "gonbatch: compiling the training step for %s\n", f.question.World)
	topology := aot.Topology{Config: f.gpu.Config(), Nodes: f.question.World.Nodes, GPUsPerNode: f.question.World.GPUsPerNode}
	compiled, err := compiler.Compile(topology, step)
	if err != nil {
		return err
	}
	fewer, ranks := f.perDevice()
	compiled.Ranks = ranks
	f.answer.FLOPs, f.answer.Half = aot.FLOPs(string(step.Program))
	f.answer.FLOPs /= fewer
	m := compiled.Memory
	f.answer.BytesMoved = m.Arguments + m.Outputs + 2*max(0, m.Temporary-f.gpu.Cache())
	f.answer.Reduced = compiled.Reduced()
	for _, c := range compiled.Collectives {
		f.answer.Collectives = append(f.answer.Collectives, c.Op)
	}
	f.answer.Memory = f.memory(m)
	return nil
}

// memory divides the step's memory by purpose.
func (f *forecaster) memory(m aot.Memory) forecast.Memory {
	var own forecast.Memory
	for v := range f.store.IterVariables() {
		switch size := v.ShardShape().ByteSize(); {
		case v.Trainable:
			own.Parameters += size
		case !f.known[v.Path()]:
			own.Optimizer += size
		}
	}
	own.Batch = max(0, m.Arguments-own.Parameters-own.Optimizer)
	own.Copies = m.Outputs - m.Aliased
	own.Total = m.Total()
	own.Activations = m.Temporary + m.Code
	return own
}
