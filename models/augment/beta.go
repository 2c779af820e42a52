package augment

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// attempts is how many pairs of numbers beta draws. Each is accepted with a probability of at least
// 1/2, so one of 4 billion examples has none that is accepted; it gets the first.
const attempts = 32

// beta draws from the distribution Beta(a, a), for a up to 1, from 2*attempts numbers for each
// example, [batch] float32 (Jöhnk, Erzeugung von betaverteilten und gammaverteilten Zufallszahlen,
// 1964). It computes with logarithms, because the powers of small numbers may vanish.
func beta(d draws, a float64) *graph.Node {
	g := d.all.Graph()
	logs := graph.MulScalar(graph.Log(graph.MaxScalar(d.all, math.Pow(2, -33))), 1/max(a, 1e-9))
	u := graph.Slice(logs, graph.AxisRange(), graph.AxisRange(0, attempts))
	v := graph.Slice(logs, graph.AxisRange(), graph.AxisRange(attempts))
	largest := graph.Max(u, v)
	sum := graph.Add(largest, graph.Log(graph.Add(graph.Exp(graph.Sub(u, largest)), graph.Exp(graph.Sub(v, largest)))))
	accepted := graph.LessOrEqual(sum, graph.ScalarZero(g, dtypes.Float32))
	first := graph.ArgMax(graph.ConvertDType(accepted, dtypes.Int32), 1)
	all := graph.Exp(graph.Sub(u, sum))
	return graph.StopGradient(graph.ReduceSum(graph.Mul(all, graph.OneHot(first, attempts, dtypes.Float32)), 1))
}
