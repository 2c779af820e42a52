package distributed

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/train"
)

// mesh is a row of this process's devices. XLA shards a program over them (GoMLX's AutoSharding).
// All programs that share variables must use the same mesh.
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

// split combines one batch of the source for each device into a batch that is sharded along its
// first axis.
func (m *mesh) split(backend compute.Backend, source train.Dataset) (*dataset.DistributedAccumulator, error) {
	return accumulate(backend, source, m.sharded)
}

// replicate gives each batch of the source to every device.
func (m *mesh) replicate(backend compute.Backend, source train.Dataset) (*dataset.DistributedAccumulator, error) {
	return accumulate(backend, source, m.whole)
}

func accumulate(backend compute.Backend, source train.Dataset, spec *distributed.ShardingSpec) (*dataset.DistributedAccumulator, error) {
	specs := []*distributed.ShardingSpec{spec}
	return dataset.NewDistributedAccumulator(backend, source, distributed.AutoSharding, specs, specs, nil)
}
