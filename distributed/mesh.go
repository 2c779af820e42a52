package distributed

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
)

// mesh is the devices of this process in a row. XLA shards a program over them (GoMLX's
// AutoSharding). All programs that share variables must be given the same mesh.
type mesh struct {
	sharded, whole *distributed.ShardingSpec
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

// assignment lists the devices.
func (w *World) assignment() []compute.DeviceNum {
	all := make([]compute.DeviceNum, w.devices)
	for i := range all {
		all[i] = compute.DeviceNum(i)
	}
	return all
}
