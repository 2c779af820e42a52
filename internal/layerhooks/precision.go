package layerhooks

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Precision is the element types in which a model computes and keeps its weights, for models that
// can't infer it from their inputs, such as integer tokens.
type Precision struct {
	Compute dtypes.DType // Of inputs and activations.
	Weights dtypes.DType // Of the variables, as the optimizer sees them.
}

// Mixed reports whether the weights and the computation have different types.
func (p Precision) Mixed() bool { return p.Compute != p.Weights }

type precisionKey struct{}

// AttachPrecision sets the precision of the models that are built in g from now on.
func AttachPrecision(g *graph.Graph, p Precision) { g.AttachState(precisionKey{}, p) }

// PrecisionOf returns the precision that was attached to g; float32 if none was.
func PrecisionOf(g *graph.Graph) Precision {
	if p, ok := g.State(precisionKey{}).(Precision); ok {
		return p
	}
	return Precision{Compute: dtypes.Float32, Weights: dtypes.Float32}
}
