package distributed

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/support/exceptions"
	pkgerrors "github.com/pkg/errors"
)

// Program is a graph-building function of a model, such as a training step. It is compiled for each
// shape of its batches, for one device or for all devices of the process.
type Program struct {
	world    *World
	name     string
	store    *model.Store
	division *Division
	build    BuildFn
	built    func() error
	execs    map[string]*model.Exec // By the number of tensors and how they are divided.
}

// BuildFn builds the graph of a program: from the tensors of a batch, what the program returns. It
// may be called several times for one program.
type BuildFn func(inputs, labels []*graph.Node) []*graph.Node

// NewProgram returns a program of a store's model, with a name for errors. division is that of the
// store (World.Divide). built is called whenever a graph was built, before it is compiled; it may
// be nil.
func (w *World) NewProgram(name string, store *model.Store, division *Division, build BuildFn, built func() error) *Program {
	return &Program{world: w, name: name, store: store, division: division, build: build, built: built, execs: map[string]*model.Exec{}}
}

// Run runs the program on the first device. The batch's tensors are the program's from then on; the
// caller must finalize the results.
func (p *Program) Run(batch train.Batch) ([]*tensors.Tensor, error) {
	if err := hasInputs(len(batch.Inputs)); err != nil {
		return nil, err
	}
	exec, err := p.exec(fmt.Sprint(len(batch.Inputs), len(batch.Labels)), len(batch.Inputs), nil)
	if err != nil {
		return nil, err
	}
	args, kept := p.donated(slices.Concat(batch.Inputs, batch.Labels))
	defer finalize(kept) //nolint:errcheck // what isn't freed now is freed by the garbage collector
	return exec.Exec(args...)
}

// donated lets the program use the memory of tensors. It returns its arguments, and the tensors
// that it leaves.
func (p *Program) donated(all []*tensors.Tensor) (args []any, kept []*tensors.Tensor) {
	args = make([]any, len(all))
	for i, t := range all {
		if !t.IsShared() {
			if buffer, err := graph.DonateTensorBuffer(t, p.world.backend, 0); err == nil {
				args[i] = buffer
				continue
			}
		}
		args[i], kept = t, append(kept, t)
	}
	return args, kept
}

// RunSharded runs the program on all devices, and returns the results of the first one: all of them
// have the same.
func (p *Program) RunSharded(batch train.DistributedBatch) ([]*tensors.Tensor, error) {
	defer batch.Finalize() //nolint:errcheck // what isn't freed now is freed by the garbage collector
	if err := hasInputs(len(batch.Inputs)); err != nil {
		return nil, err
	}
	all := slices.Concat(batch.Inputs, batch.Labels)
	key, specs, args := fmt.Sprint(len(batch.Inputs), len(batch.Labels)), make([]*distributed.ShardingSpec, len(all)), make([]any, len(all))
	for i, t := range all {
		specs[i], args[i] = t.ShardingSpec(), t
		key += fmt.Sprintf(" %p", specs[i])
	}
	exec, err := p.exec(key, len(batch.Inputs), func(exec *model.Exec) error {
		mesh := specs[0].Mesh
		exec.AutoSharding(mesh).WithInputShardingSpecs(specs...).WithOutputShardingSpecs(distributed.NewReplicatedShardingSpec(mesh)).
			WithDeviceAssignment(p.world.assignment())
		return p.division.prepare(exec, func() error { return p.try(len(batch.Inputs), all) })
	})
	if err != nil {
		return nil, err
	}
	outputs, err := exec.DistributedExec(args...)
	if err != nil {
		return nil, err
	}
	results := make([]*tensors.Tensor, len(outputs))
	for i, output := range outputs {
		shards := output.Shards()
		results[i], err = shards[0], errors.Join(err, finalize(shards[1:]))
	}
	return results, err
}

func hasInputs(n int) error {
	if n == 0 {
		return errors.New("the batch has no inputs: a model needs at least one")
	}
	return nil
}

// exec returns what compiles and runs the program for batches of a kind, which key identifies.
// prepare prepares a new one.
func (p *Program) exec(key string, inputs int, prepare func(*model.Exec) error) (*model.Exec, error) {
	if exec := p.execs[key]; exec != nil {
		return exec, nil
	}
	exec, err := model.NewExec(p.world.backend, p.store, func(_ *model.Scope, all []*graph.Node) []*graph.Node {
		outputs := p.graph(all[:inputs], all[inputs:])
		if p.built != nil {
			if err := p.built(); err != nil {
				panic(err)
			}
		}
		if prepare != nil {
			p.division.outputs(all[0].Graph())
		}
		return outputs
	})
	if err != nil {
		return nil, err
	}
	exec.WithName(p.name)
	// GoMLX's limit of 32 shapes would end a training run at the 33rd size of a last batch.
	exec.SetMaxCache(-1)
	if prepare != nil {
		if err := prepare(exec); err != nil {
			return nil, err
		}
	}
	p.execs[key] = exec
	return exec, nil
}

// graph builds the graph. GoMLX returns a panic of the model as an error if its value is one.
func (p *Program) graph(inputs, labels []*graph.Node) []*graph.Node {
	defer func() {
		if value := recover(); value != nil {
			if _, isError := value.(error); !isError {
				value = pkgerrors.Errorf("%v", value)
			}
			panic(value)
		}
	}()
	return p.build(inputs, labels)
}

// try builds a graph that is thrown away, so that the store has the program's variables.
func (p *Program) try(inputs int, batch []*dtensor.Tensor) error {
	g := graph.NewGraph(p.world.backend, p.name+", to learn its variables")
	defer g.Finalize()
	model.SetStore(g, p.store)
	return exceptions.TryCatch[error](func() {
		nodes := make([]*graph.Node, len(batch))
		for i, t := range batch {
			nodes[i] = graph.Parameter(g, fmt.Sprint("batch", i), t.Shape())
		}
		p.graph(nodes[:inputs], nodes[inputs:])
	})
}

// RunSteps runs a program for each batch of the loader's next epoch, and yields its results, which
// the caller must finalize. program returns the program of the iteration's i-th batch once that is
// there.
func (w *World) RunSteps(l Loader, program func(i int) *Program) iter.Seq2[[]*tensors.Tensor, error] {
	if sharded, ok := l.(train.DistributedDataset); ok {
		return iterate(sharded.DistributedIter(), func(i int, batch train.DistributedBatch) ([]*tensors.Tensor, error) {
			return program(i).RunSharded(batch)
		})
	}
	return iterate(l.Iter(), func(i int, batch train.Batch) ([]*tensors.Tensor, error) { return program(i).Run(batch) })
}
