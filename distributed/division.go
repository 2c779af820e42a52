package distributed

import (
	"errors"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/internal/cpulib"
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
// So Prepare first builds the graph of a program without compiling it, gives the variables that it
// creates their specs, and computes their initial values itself. Outputs gives GoMLX the specs of
// the new values while the graph is built again.
//
// Package trainer divides the variables of its training runs. This is how its calls are connected:
//
//	division, err := world.Divide(store, 2, func(v *model.Variable) (int, error) { return v.Shape().Rank() - 1, nil })
//	gomlx.OnExecCreation(func(exec *model.Exec, _ train.GraphType) { division.Prepare(exec) })
//	// At the end of the optimizer's UpdateGraph, and of the loss of an evaluation:
//	division.Tried()
//	// In the last metric of the training step:
//	division.Outputs(g)
type Division struct {
	world  *World
	store  *model.Store
	mesh   *mesh
	axisOf func(*model.Variable) (int, error)
	execs  []*model.Exec
	trying bool
	failed error
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
		cpulib.Use(nil) // Such programs have no kernels.
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

// errTried ends the first build of a graph.
var errTried = errors.New("the graph is built only to learn its variables")

// Prepare prepares a program of GoMLX's trainer that was just created, and its variables. Call it
// by train.Trainer.OnExecCreation. An error is kept for Tried.
func (d *Division) Prepare(exec *model.Exec) {
	if d == nil || d.failed != nil {
		return
	}
	if d.mesh.model == 1 && !d.fit() {
		return
	}
	d.failed = d.world.forecaster.prepares(func() error { return d.prepare(exec, d.world.batchShapes) })
}

// fit takes the mesh that World.FitDevices has left, and reports whether there is one.
func (d *Division) fit() bool {
	if d.world.mesh == nil {
		return false
	}
	d.mesh = d.world.mesh
	return true
}

func (d *Division) prepare(exec *model.Exec, inputs []shapes.Shape) error {
	if d.mesh.model > 1 {
		d.try(exec, inputs)
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
		d.setOutputs(d.mesh.whole) // GoMLX takes the specs as those of the metrics now.
		if show != nil {
			show(g, messages, values, nodes)
		}
	})
	return nil
}

// try builds a graph up to Tried, so that the store has its variables. If it fails, so does the
// build that follows.
func (d *Division) try(exec *model.Exec, inputs []shapes.Shape) {
	d.trying = true
	defer func() { d.trying = false }()
	_, _ = exec.Compile(inputs...)
}

// Tried ends the first build of a graph. Call it in the graph function once all variables exist,
// and nothing else may happen in the first build. It panics if Prepare has failed.
func (d *Division) Tried() {
	switch {
	case d == nil:
	case d.trying:
		panic(errTried)
	case d.failed != nil:
		panic(d.failed)
	}
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

// initialize computes the initial values of the variables that have none, each device its parts.
func (d *Division) initialize() error {
	var missing []*model.Variable
	var initializers []model.VariableInitializer
	for v := range d.store.IterVariables() {
		if v.HasValue() {
			continue
		}
		f, err := initializerOf(v)
		if err != nil {
			return err
		}
		missing, initializers = append(missing, v), append(initializers, f)
	}
	if len(missing) == 0 {
		return nil
	}
	err := d.setInitial(missing, initializers)
	if err == nil {
		return nil
	}
	for _, v := range missing { // Without the values that setInitial gave them for a moment.
		err = errors.Join(err, v.SetValue(nil))
	}
	return err
}

func (d *Division) setInitial(variables []*model.Variable, initializers []model.VariableInitializer) error {
	for _, v := range variables { // So that GoMLX doesn't initialize them. This memory isn't used.
		if err := v.SetValuePreservingOld(tensors.FromShape(v.Shape())); err != nil {
			return err
		}
	}
	if err := d.store.InitializeVariables(d.world.backend, nil); err != nil {
		return err
	}
	parts, err := d.initial(variables, initializers)
	if err != nil {
		return err
	}
	for i, v := range variables {
		if err := v.SetDistributedValue(parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// initial computes the values of variables.
func (d *Division) initial(variables []*model.Variable, initializers []model.VariableInitializer) ([]*dtensor.Tensor, error) {
	var exec *model.Exec
	exec, err := model.NewExec(d.world.backend, d.store, func(_ *model.Scope, g *graph.Graph) []*graph.Node {
		values := make([]*graph.Node, len(variables))
		for i, v := range variables {
			values[i] = initializers[i](g, v.Shape())
		}
		specs := d.changed(g)
		for _, v := range variables {
			specs = append(specs, v.ShardingSpec())
		}
		exec.WithOutputShardingSpecs(specs...)
		return values
	})
	if err != nil {
		return nil, err
	}
	defer exec.Finalize()
	exec.WithName("VariableInitialization").AutoSharding(d.mesh.grid).WithDeviceAssignment(d.world.assignment())
	outputs, err := exec.Exec()
	if err != nil {
		return nil, err
	}
	all := make([]*dtensor.Tensor, len(variables))
	for i, v := range variables {
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

// initializerOf returns what computes a variable's initial value. GoMLX keeps it to itself.
func initializerOf(v *model.Variable) (model.VariableInitializer, error) {
	field := reflect.ValueOf(v).Elem().FieldByName("initializer")
	if !field.IsValid() || field.Type() != reflect.TypeFor[model.VariableInitializer]() {
		return nil, errors.New("GoMLX keeps initializers in a way that gonbatch doesn't know: use the version of GoMLX in gonbatch's go.mod")
	}
	f := *(*model.VariableInitializer)(unsafe.Pointer(field.UnsafeAddr()))
	if f == nil {
		return nil, fmt.Errorf("%s has no initializer", v.Path())
	}
	return f, nil
}

// Outputs gives the new values of variables the specs of the old ones. Call it at the end of the
// graph function of a program that was prepared, when nothing changes variables any more.
func (d *Division) Outputs(g *graph.Graph) {
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

// CheckUnchanged is for a program whose graph function can't call Outputs at its end, such as an
// evaluation of GoMLX's trainer. It panics if the graph changes a variable that is divided, because
// GoMLX would compile whole new values.
func (d *Division) CheckUnchanged(g *graph.Graph) {
	if !d.Divides() {
		return
	}
	d.setOutputs(d.mesh.whole)
	for v := range d.store.IterVariables() {
		if spec := v.ShardingSpec(); v.ChangedInGraph(g) && spec != nil && !spec.IsReplicated() {
			panic(fmt.Errorf("distributed: the model changes %s, %s, in an evaluation, but it is divided among devices: keep it whole (trainer.Divide with trainer.Whole)", v.Path(), v.Shape()))
		}
	}
}

// Spread prepares a program of the store's model for all devices of the division, which get the
// same inputs: those of a batch of SpreadBatches, without the labels. Call it before the first run.
func (d *Division) Spread(exec *model.Exec, batch train.DistributedBatch) {
	exec.AutoSharding(d.mesh.grid).WithInputShardingSpecs(d.mesh.whole).WithOutputShardingSpecs(d.mesh.whole).
		WithDeviceAssignment(d.world.assignment())
	if d.failed != nil {
		return
	}
	d.failed = d.prepare(exec, shapesOf(train.DistributedBatch{Inputs: batch.Inputs}))
}
