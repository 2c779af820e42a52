package checkpoint_test

import (
	"testing"

	"github.com/gomlx/compute/distributed"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/dtensor"
	"github.com/gomlx/gomlx/ml/model"
)

// TestTakeFromDevices takes and restores variables that are replicated over two devices, or split
// between them.
func TestTakeFromDevices(t *testing.T) {
	row, err := distributed.NewDeviceMesh([]int{2}, []string{"data"})
	ok(t, err)
	divided, err := distributed.BuildSpec(row).S("data").Done()
	ok(t, err)
	want := [][]float32{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}, {10, 11, 12}}
	tests := []struct {
		name string
		spec *distributed.ShardingSpec
	}{
		{name: "replicated", spec: distributed.NewReplicatedShardingSpec(row)},
		{name: "divided", spec: divided},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			store := model.NewStore()
			v, err := store.CreateVariable("/weights", tensors.FromValue(want))
			ok(t, err)
			value, err := dtensor.ShardTensor(tt.spec, tensors.FromValue(want))
			ok(t, err)
			ok(t, v.SetDistributedValue(value))
			s := take(t, store)
			same(t, any(want), s.Tensors["/weights"].Value())

			other, err := dtensor.ShardTensor(tt.spec, tensors.FromValue([][]float32{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}}))
			ok(t, err)
			ok(t, v.SetDistributedValue(other))
			ok(t, s.Restore(store))
			got, err := v.Value()
			ok(t, err)
			same(t, any(want), got.Value())
		})
	}
}
