// Package dtype tells a model in which element types to compute and to keep its weights, for models
// that don't see it in their inputs: those of tokens are integers. The trainer attaches its
// precision to a graph, and the model that is built in it asks for it.
//
//	dtype.Attach(g, dtype.Precision{Compute: dtypes.BFloat16, Weights: dtypes.Float32}) // in package trainer
//	x := graph.ConvertDType(embeddings, dtype.Of(g).Compute)                             // in a model
//
// It converts nothing itself.
package dtype

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Precision is the element types of a model.
type Precision struct {
	Compute dtypes.DType // Of inputs and activations.
	Weights dtypes.DType // Of the variables, as the optimizer sees them.
}

// Mixed reports whether the weights have more digits than the computation.
func (p Precision) Mixed() bool { return p.Compute != p.Weights }

type key struct{}

// Attach sets the precision of the models that are built in g from now on.
func Attach(g *graph.Graph, p Precision) { g.AttachState(key{}, p) }

// Of returns the precision that was attached to g; float32 if none was.
func Of(g *graph.Graph) Precision {
	if p, ok := g.State(key{}).(Precision); ok {
		return p
	}
	return Precision{Compute: dtypes.Float32, Weights: dtypes.Float32}
}
