package distributed

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/ml/dataset"
	"github.com/gomlx/gomlx/ml/train"
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

// split makes a batch that is sharded by its first axis of as many batches of the source as there
// are devices.
func (m *mesh) split(backend compute.Backend, source train.Dataset) (*dataset.DistributedAccumulator, error) {
	return accumulate(backend, source, m.sharded)
}

// replicate gives every device the whole of each batch of the source.
func (m *mesh) replicate(backend compute.Backend, source train.Dataset) (*dataset.DistributedAccumulator, error) {
	return accumulate(backend, source, m.whole)
}

func accumulate(backend compute.Backend, source train.Dataset, spec *distributed.ShardingSpec) (*dataset.DistributedAccumulator, error) {
	specs := []*distributed.ShardingSpec{spec}
	return dataset.NewDistributedAccumulator(backend, source, distributed.AutoSharding, specs, specs, nil)
}
