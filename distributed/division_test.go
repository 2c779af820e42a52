package distributed

import (
	"strings"
	"testing"

	"gonbatch/internal/cluster"
	"gonbatch/internal/forecast"
)

// TestCheckModelParallel: rows that the devices can't make are refused.
func TestCheckModelParallel(t *testing.T) {
	for _, test := range []struct {
		world *World
		n     int
		want  string
	}{
		{&World{devices: 8}, 1, ""},
		{&World{devices: 8}, 2, ""},
		{&World{devices: 8}, 8, ""},
		{&World{devices: 8}, 0, "each weight in 0 parts: there must be at least 1"},
		{&World{devices: 8}, 3, "each weight in 3 parts, but this process has 8 devices: their number must be a multiple of 3"},
		{&World{devices: 1}, 2, "each weight in 2 parts, but this process has 1 device: their number must be a multiple of 2"},
		{&World{devices: 1, environment: cluster.Environment{Rank: 1, Size: 4}}, 1, ""},
		{&World{devices: 1, environment: cluster.Environment{Rank: 1, Size: 4}}, 2, "but this is rank 1 of 4"},
		{&World{devices: 1, forecaster: imagining(2, 4)}, 2, "the forecast is for 8 x h100 on 2 nodes: XLA divides weights only among the GPUs of one process: give --nodes=1"},
		{&World{devices: 1, forecaster: imagining(1, 4)}, 3, "the forecast is for 4 x h100 on one node: their number must be a multiple of 3"},
	} {
		err := test.world.CheckModelParallel(test.n)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%d of %d devices: got %v, want %q", test.n, test.world.devices, err, test.want)
		}
	}
}

// imagining returns the forecaster of a world.
func imagining(nodes, gpus int) *forecaster {
	return &forecaster{question: forecast.Question{World: forecast.World{Target: "h100", Nodes: nodes, GPUsPerNode: gpus}}}
}

// TestMesh: a mesh is the same one for each world, and divides an axis among the devices of a row.
func TestMesh(t *testing.T) {
	m, err := meshOf(2, 4)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := meshOf(2, 4); again != m {
		t.Error("another mesh for the same devices")
	}
	if other, _ := meshOf(4, 2); other == m {
		t.Error("the same mesh for other rows")
	}
	spec, err := m.divided(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got := spec.NumDevicesShardingAxis(1); got != 4 || spec.Rank() != 3 || spec.NumDevicesShardingAxis(0) != 1 || m.sharded.NumDevicesShardingAxis(0) != 2 {
		t.Errorf("%s, and batches %s", spec, m.sharded)
	}
}
