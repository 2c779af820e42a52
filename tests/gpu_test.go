package tests

import (
	"testing"

	"gonbatch/distributed/pjrt/testplugin"
	"gonbatch/distributed/ranktest"
	"gonbatch/tests/cluster"
)

// gpuCluster is a cluster of two nodes with two GPUs each, and a user whose programs compute by the
// test plugin.
func gpuCluster(t *testing.T) user {
	t.Helper()
	c := cluster.Start(t, cluster.Nodes(2), cluster.GPUs(2), cluster.GPUType("a100"), cluster.InDev(ranktest.GPUScript()))
	return newUser(t, append(c.Env(), "GONBATCH_PLUGIN_DIR="+testplugin.Build(t))...)
}

// TestGPUs: a job on GPUs has one rank for each, on all nodes.
func TestGPUs(t *testing.T) {
	t.Parallel()
	u := gpuCluster(t)
	t.Run("preflight", func(t *testing.T) {
		out := u.mustSubmit(t, "preflight", "--nodes", "2", "--gpus-per-node", "a100:2")
		wantPlaces(t, out, `0 +n1 +\S.* +1 cuda device, .*`, `1 +n1 +\S.* +1 cuda device, .*`, `2 +n2 +\S.* +1 cuda device, .*`, `3 +n2 +\S.* +1 cuda device, .*`,
			`all-reduce over 4 ranks .* the sum is right, .*s`)
	})
}
