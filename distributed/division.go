package distributed

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/internal/layerhooks"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// Division divides variables among the devices of this process: each device has a part of a
// variable, along one of its axes, and XLA divides the computation accordingly. The devices are in
// rows of ModelParallel devices. The parts of a variable are in one row, and each row has its own
// part of a batch. A division of rows of one device only keeps variables on the devices of the
// world.
//
// GoMLX v0.28 has sharding specs for variables, but three things are missing: a variable is used in
// a graph as soon as a layer creates it, before anything could give it a spec; the new values of
// variables are compiled as whole ones; and initial values are computed whole on the first device.
// So a Program first builds a graph that is thrown away. The division gives the variables that this
// creates their specs, and computes their initial values itself. It gives GoMLX the specs of the
// new values while the graph is built again.
type Division struct {
	world  *World
	store  *model.Store
	mesh   *mesh
	axisOf func(*model.Variable) (int, error)
	execs  []*model.Exec
}

// Whole is the axis of a variable that isn't divided.
const Whole = -1

// Divide returns the division of a store's variables. axisOf returns the axis along which a
// variable is divided, which must be divisible by modelParallel, or Whole. It is asked again for
// each program. Divide returns nil, which does nothing, if there is one device. If modelParallel is
// more than 1, the number of devices stays from now on.
func (w *World) Divide(store *model.Store, modelParallel int, axisOf func(*model.Variable) (axis int, err error)) (*Division, error) {
	m, err := w.meshFor(modelParallel)
	if m == nil || err != nil {
		return nil, err
	}
	if m.model > 1 {
		w.busy.Store(true)
		layerhooks.SetConvolves(nil) // Such programs have no kernels.
	}
	return &Division{world: w, store: store, mesh: m, axisOf: axisOf}, nil
}

// CheckModelParallel returns an error if the devices of this process can't be in rows of n. In a
// forecast, this process gets as many devices as the node has GPUs.
func (w *World) CheckModelParallel(n int) error {
	switch {
	case n < 1:
		return fmt.Errorf("each weight in %s: there must be at least 1", plural.Of(n, "part"))
	case n > 1 && w.forecaster != nil:
		return w.imagineDevices(n)
	case n > 1 && w.Size() > 1:
		return fmt.Errorf("each weight in %s, but this is rank %d of %d: XLA divides weights only among the devices of one process: start one task with all devices (submit --nodes=1 --tasks-per-node=1 --devices=all)",
			plural.Of(n, "part"), w.Rank(), w.Size())
	case w.devices%n != 0:
		return fmt.Errorf("each weight in %s, but this process has %s: their number must be a multiple of %d: change one of them (submit --devices, or %s)",
			plural.Of(n, "part"), plural.Of(w.devices, "device"), n, rundir.EnvDevices)
	}
	return nil
}

// Divides reports whether variables are divided.
func (d *Division) Divides() bool { return d != nil && d.mesh.model > 1 }

// prepare prepares a program that was just created, and its variables. try builds its graph, so
// that the store has them.
func (d *Division) prepare(exec *model.Exec, try func() error) error {
	if d.mesh.model == 1 && !d.fit() {
		return nil
	}
	return d.world.forecaster.prepares(func() error { return d.divide(exec, try) })
}

// fit takes the mesh that World.FitDevices has left, and reports whether there is one.
func (d *Division) fit() bool {
	if d.world.mesh == nil {
		return false
	}
	d.mesh = d.world.mesh
	return true
}

func (d *Division) divide(exec *model.Exec, try func() error) error {
	if d.mesh.model > 1 {
		if err := try(); err != nil {
			return err
		}
	}
	if err := d.place(); err != nil || d.mesh.model == 1 {
		return err
	}
	if err := d.initialize(); err != nil {
		return fmt.Errorf("distributed: initialize the variables on %s: %w", plural.Of(d.world.devices, "device"), err)
	}
	d.execs = append(d.execs, exec)
	show := exec.GetNodeLogger()
	exec.SetNodeLogger(func(g *graph.Graph, messages []string, values []*tensors.Tensor, nodes []graph.NodeId) {
		d.setOutputs(d.mesh.whole) // GoMLX takes the specs as those of the program's results now.
		if show != nil {
			show(g, messages, values, nodes)
		}
	})
	return nil
}

// place gives all variables their specs.
func (d *Division) place() error {
	for v := range d.store.IterVariables() {
		spec, err := d.specOf(v)
		if err == nil && !same(v.ShardingSpec(), spec) {
			err = move(v, spec)
		}
		if err != nil {
			return fmt.Errorf("distributed: divide %s, %s: %w", v.Path(), v.Shape(), err)
		}
	}
	return nil
}

func (d *Division) specOf(v *model.Variable) (*distributed.ShardingSpec, error) {
	if d.mesh.model == 1 {
		return d.mesh.whole, nil
	}
	axis, err := d.axisOf(v)
	if axis == Whole || err != nil {
		return d.mesh.whole, err
	}
	if n := v.Shape().Dimensions[axis]; n%d.mesh.model != 0 {
		return nil, fmt.Errorf("axis %d has %s, which %s can't divide evenly", axis, plural.Of(n, "element"), plural.Of(d.mesh.model, "device"))
	}
	return d.mesh.divided(axis, v.Shape().Rank())
}

// same reports whether two specs say the same.
func same(a, b *distributed.ShardingSpec) bool {
	return a != nil && a.Mesh == b.Mesh && (a.IsReplicated() && b.IsReplicated() || reflect.DeepEqual(a.Axes, b.Axes))
}

// move gives a variable a spec, and keeps its value.
func move(v *model.Variable, spec *distributed.ShardingSpec) error {
	if !v.HasValue() {
		return v.SetShardingSpec(spec)
	}
	value, err := v.Value()
	if err == nil {
		err = v.SetValuePreservingOld(value) // Otherwise GoMLX refuses another spec.
	}
	if err != nil {
		return err
	}
	return v.SetShardingSpec(spec)
}

// errComputed keeps GoMLX from computing initial values that are computed already.
var errComputed = errors.New("the initial values are computed")

// initialize computes the initial values of the variables that have none, each device its parts:
// with the program of GoMLX that would compute them whole on the first device.
func (d *Division) initialize() error {
	var missing []*model.Variable
	for v := range d.store.IterVariables() {
		if !v.HasValue() {
			missing = append(missing, v)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	exec := new(*model.Exec)
	last := d.lastInitializer(missing, exec)
	var parts []*dtensor.Tensor
	err := d.store.InitializeVariables(d.world.backend, func(given *model.Exec) (err error) {
		*exec = given
		defer given.Finalize()
		if parts, err = d.initial(given, append(missing, last)); err != nil {
			return err
		}
		return errComputed
	})
	err = errors.Join(d.store.DeleteVariable(last.Path()), without(err, errComputed))
	for i, v := range missing {
		if err != nil {
			err = errors.Join(err, v.SetValue(nil)) // Without the value that it had for a moment.
		} else {
			err = v.SetDistributedValue(parts[i])
		}
	}
	return err
}

// without returns nil if err is the other one.
func without(err, other error) error {
	if errors.Is(err, other) {
		return nil
	}
	return err
}

// lastInitializer creates a variable whose initializer gives the program of all initializers the
// specs of its results: GoMLX calls it last, when the other ones have changed what they change,
// such as the state of the random numbers.
func (d *Division) lastInitializer(others []*model.Variable, exec **model.Exec) *model.Variable {
	return d.store.VariableWithShape("/gonbatch/last initializer", shapes.Make(dtypes.Int32), func(g *graph.Graph, _ shapes.Shape) *graph.Node {
		specs := d.changed(g)
		for _, v := range others {
			specs = append(specs, v.ShardingSpec())
		}
		(*exec).WithOutputShardingSpecs(append(specs, d.mesh.whole)...)
		return graph.Const(g, int32(0))
	})
}

// initial computes the values of variables.
func (d *Division) initial(exec *model.Exec, variables []*model.Variable) ([]*dtensor.Tensor, error) {
	for _, v := range variables { // So that GoMLX doesn't initialize them. This memory isn't used.
		if err := v.SetValuePreservingOld(tensors.FromShape(v.Shape())); err != nil {
			return nil, err
		}
	}
	if err := d.store.InitializeVariables(d.world.backend, nil); err != nil { // There is nothing left to do.
		return nil, err
	}
	outputs, err := exec.AutoSharding(d.mesh.grid).WithDeviceAssignment(d.world.assignment()).Exec()
	if err != nil {
		return nil, err
	}
	all := make([]*dtensor.Tensor, len(variables)-1)
	for i, v := range variables[:len(all)] {
		var shards []*tensors.Tensor
		for device := range d.world.devices {
			shards = append(shards, outputs[device*len(variables)+i])
		}
		if all[i], err = dtensor.NewTensor(v.ShardingSpec(), shards); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// outputs gives the new values of variables the specs of the old ones, at the end of a graph.
func (d *Division) outputs(g *graph.Graph) {
	if d.Divides() {
		d.setOutputs(append(d.changed(g), d.mesh.whole)...)
	}
}

// changed returns the specs of the variables that a graph changes, in the order of GoMLX's outputs.
func (d *Division) changed(g *graph.Graph) (specs []*distributed.ShardingSpec) {
	for v := range d.store.IterVariables() {
		switch {
		case !v.ChangedInGraph(g):
		case v.ShardingSpec() == nil:
			specs = append(specs, d.mesh.whole)
		default:
			specs = append(specs, v.ShardingSpec())
		}
	}
	return specs
}

// setOutputs sets the specs of the outputs of the programs. One of them is being built or run.
func (d *Division) setOutputs(specs ...*distributed.ShardingSpec) {
	for _, exec := range d.execs {
		exec.WithOutputShardingSpecs(specs...)
	}
}
