package aot_test

import (
	"testing"

	"gonbatch/distributed/aot"
	"gonbatch/distributed/aot/aottest"
	"gonbatch/distributed/pjrt"
	"gonbatch/internal/forecast"
)

// twoReplicas are compile options: two replicas, on the devices 0 and 1.
var twoReplicas = []byte("\x1a\x1b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x20\x02\x28\x01\x4a\x0a\x08\x02\x10\x01\x1a\x04\x0a\x02\x00\x01\x20\x00")

const sumOf1000 = `module @sum {
  func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
    %sum = "stablehlo.all_reduce"(%x) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<1000xf32>) -> tensor<1000xf32>
    return %sum : tensor<1000xf32>
  }
}`

// TestTargets: XLA compiles for each GPU that is known, and refuses what is no program.
func TestTargets(t *testing.T) {
	compiler, err := aot.Open(aottest.Compiler(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range forecast.Names() {
		gpu, err := forecast.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		topology := aot.Topology{Config: gpu.Config(), Nodes: 2, GPUsPerNode: 1}
		got, err := compiler.Compile(topology, pjrt.Step{Program: []byte(sumOf1000), Options: twoReplicas})
		if err != nil || len(got.Collectives) != 1 || got.Reduced() != 4000 || got.Memory.Arguments != 4000 {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
		if _, err := compiler.Compile(topology, pjrt.Step{Program: []byte("nonsense"), Options: twoReplicas}); err == nil {
			t.Errorf("%s: nonsense was compiled", name)
		}
	}
	if _, err := compiler.Compile(aot.Topology{Config: "nonsense", Nodes: 1, GPUsPerNode: 2}, pjrt.Step{Program: []byte(sumOf1000), Options: twoReplicas}); err == nil {
		t.Error("compiled for nonsense")
	}
}
