package distributed

import (
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
)

// mesh is the devices of this process in a row. XLA shards a program over them (GoMLX's
// AutoSharding). All programs that share variables must be given the same mesh.
type mesh struct {
	sharded, whole *distributed.ShardingSpec
}

// meshes has the mesh for each number of devices: GoMLX refuses a variable of an earlier world on
// another mesh, even if it is the same row of devices.
var meshes sync.Map

func meshOf(devices int) (*mesh, error) {
	if known, ok := meshes.Load(devices); ok {
		return known.(*mesh), nil
	}
	made, err := newMesh(devices)
	if err != nil {
		return nil, err
	}
	known, _ := meshes.LoadOrStore(devices, made)
	return known.(*mesh), nil
}

func newMesh(devices int) (*mesh, error) {
	row, err := distributed.NewDeviceMesh([]int{devices}, []string{"data"})
	if err != nil {
		return nil, err
	}
	split, err := distributed.BuildSpec(row).S("data").Done()
	if err != nil {
		return nil, err
	}
	return &mesh{split, distributed.NewReplicatedShardingSpec(row)}, nil
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
