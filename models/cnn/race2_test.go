package cnn

import (
	"fmt"
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/models/modelstest"
)

func TestRaceNorm(t *testing.T) {
	for _, s := range [][2]int{{32, 64}, {16, 128}, {8, 256}, {4, 512}} {
		h, c := s[0], s[1]
		in := []any{modelstest.Noise(1, 32, h, h, c), modelstest.Noise(2, c), modelstest.Noise(3, c), modelstest.Noise(4, 32, h, h, c)}
		norm := func(in []*graph.Node) normalization { return normalization{x: in[0], scale: in[1], offset: in[2], epsilon: 1e-5} }
		race(t, fmt.Sprintf("norm %v fwd", s), 0, in,
			variant{"plain", func(in []*graph.Node) []*graph.Node {
				y, _, _ := graph.InternalBatchNormForTraining(in[0], in[1], in[2], 1e-5, -1)
				return []*graph.Node{y}
			}},
			variant{"dots", func(in []*graph.Node) []*graph.Node {
				y, _, _ := norm(in).byBatch()
				return []*graph.Node{y}
			}})
		race(t, fmt.Sprintf("norm %v all", s), 0, in,
			variant{"plain", func(in []*graph.Node) []*graph.Node {
				y, _, _ := graph.InternalBatchNormForTraining(in[0], in[1], in[2], 1e-5, -1)
				return append(graph.Gradient(graph.ReduceAllSum(graph.Mul(y, in[3])), in[0], in[1], in[2]), y)
			}},
			variant{"dots", func(in []*graph.Node) []*graph.Node {
				y, _, _ := norm(in).byBatch()
				return append(graph.Gradient(graph.ReduceAllSum(graph.Mul(y, in[3])), in[0], in[1], in[2]), y)
			}})
	}
}
