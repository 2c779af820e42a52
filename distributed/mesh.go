package distributed

import (
	"fmt"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"

	"gonbatch/internal/plural"
)

// mesh is the devices of this process in rows: each row has its own part of a batch, and the
// devices of a row have parts of the weights (see Division), or all of them. XLA shards a program
// over them (GoMLX's AutoSharding). All programs that share variables must be given the same mesh.
type mesh struct {
	data, model    int // The numbers of rows, and of devices in a row.
	grid           *distributed.DeviceMesh
	sharded, whole *distributed.ShardingSpec
}

// meshes has the mesh for each number of rows and devices in a row: GoMLX refuses a variable of an
// earlier world on another mesh, even if it is the same devices.
var meshes sync.Map

func meshOf(data, model int) (*mesh, error) {
	key := [2]int{data, model}
	if known, ok := meshes.Load(key); ok {
		return known.(*mesh), nil
	}
	made, err := newMesh(data, model)
	if err != nil {
		return nil, err
	}
	known, _ := meshes.LoadOrStore(key, made)
	return known.(*mesh), nil
}

// The axes of a mesh.
const (
	dataAxis  = "data"
	modelAxis = "model"
)

func newMesh(data, model int) (*mesh, error) {
	sizes, names := []int{data, model}, []string{dataAxis, modelAxis}
	if model == 1 {
		sizes, names = sizes[:1], names[:1]
	}
	grid, err := distributed.NewDeviceMesh(sizes, names)
	if err != nil {
		return nil, err
	}
	split, err := distributed.BuildSpec(grid).S(dataAxis).Done()
	if err != nil {
		return nil, err
	}
	return &mesh{data, model, grid, split, distributed.NewReplicatedShardingSpec(grid)}, nil
}

// divided returns the spec of a value that the devices of a row have parts of, along an axis.
func (m *mesh) divided(axis, rank int) (*distributed.ShardingSpec, error) {
	axes := make([]distributed.AxisSpec, rank)
	axes[axis] = distributed.AxisSpec{modelAxis}
	return distributed.NewShardingSpec(m.grid, axes...)
}

// meshFor returns the mesh with a number of devices in a row; nil if there is one device.
func (w *World) meshFor(modelParallel int) (*mesh, error) {
	if modelParallel <= 1 {
		return w.mesh, nil
	}
	if err := w.CheckModelParallel(modelParallel); err != nil {
		return nil, err
	}
	return meshOf(w.devices/modelParallel, modelParallel)
}

// rows returns the number of parts of a batch over all ranks.
func (w *World) rows(modelParallel int) int { return w.Size() * w.devices / max(1, modelParallel) }

// explainRows adds to an error of a loader how the devices share a batch.
func (w *World) explainRows(err error, o LoaderOptions, lanes int) error {
	if err == nil || o.ModelParallel <= 1 {
		return w.explainBusy(err, o.BatchSize, lanes)
	}
	return fmt.Errorf("%w; %d of the %s have parts of the same weights and the same part of a batch", err, o.ModelParallel, plural.Of(w.devices, "device"))
}

// assignment lists the devices. Their number stays from now on.
func (w *World) assignment() []compute.DeviceNum {
	w.busy.Store(true)
	all := make([]compute.DeviceNum, w.devices)
	for i := range all {
		all[i] = compute.DeviceNum(i)
	}
	return all
}
