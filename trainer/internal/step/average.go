package step

import (
	"fmt"
	"path"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/optimizer"
)

// AverageScope has the moving averages of the weights, with their paths below it. It is under the
// optimizers' scope, so it isn't mistaken for a part of the model.
var AverageScope = path.Join("/", optimizer.Scope, "average")

// AverageCount counts the updates of the averages.
var AverageCount = path.Join(AverageScope, "#updates")

// average moves the averages of the variables towards their new values, after an update. Like
// PyTorch's AveragedModel, they begin with the values after the first update. What layers change
// after an update, such as small weights that L1 regularization rounds to zero, is changed before.
func (s *Step) average(g *graph.Graph, variables []*model.Variable) {
	if s.EMADecay == 0 {
		return
	}
	s.perStepUpdates(g)
	count := s.Store.Scope(AverageScope).VariableWithValue(path.Base(AverageCount), int64(0)).SetTrainable(false)
	before := count.NodeValue(g)
	count.SetNodeValue(graph.AddScalar(before, 1))
	first := graph.Equal(before, graph.ZerosLike(before))
	done := map[string]bool{}
	for _, v := range variables {
		if !done[v.Path()] {
			s.averageOne(g, v, first)
		}
		done[v.Path()] = true
	}
}

func (s *Step) averageOne(g *graph.Graph, v *model.Variable, first *graph.Node) {
	if v.DType() == dtypes.Float16 {
		panic(fmt.Errorf("trainer: ema_decay: the weight %s is %s, and averages are for weights in BFloat16, Float32 and Float64: use another type, or leave ema_decay out", v.Path(), v.Shape()))
	}
	value := widened([]*graph.Node{v.NodeValue(g)})[0]
	average := s.Store.Scope(path.Join(AverageScope, v.Scope())).WithInitializer(initializer.Zero).VariableWithShape(v.Name(), value.Shape()).SetTrainable(false)
	old := average.NodeValue(g)
	moved := graph.Add(old, graph.MulScalar(graph.Sub(value, old), 1-s.EMADecay))
	average.SetNodeValue(graph.Where(first, value, moved))
}
