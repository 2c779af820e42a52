package layerhooks_test

import (
	"testing"

	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/internal/layerhooks"
	"gonbatch/models/modelstest"
)

// TestAttachTwice: the layers of two models in one graph are counted together.
func TestAttachTwice(t *testing.T) {
	g := graph.NewGraph(modelstest.Backend(t), "twice")
	if _, ok := layerhooks.MeanUses(g); ok || layerhooks.Mean(g) != nil {
		t.Error("a mean is attached to a new graph")
	}
	for _, model := range []string{"first", "second"} {
		used := ""
		layerhooks.AttachMean(g, func(x *graph.Node) *graph.Node { used = model; return x })
		for range 2 {
			if layerhooks.Mean(g)(nil); used != model {
				t.Errorf("the %s model uses the mean of %q", model, used)
			}
		}
	}
	if uses, ok := layerhooks.MeanUses(g); uses != 4 || !ok {
		t.Errorf("got %d uses, %t, want 4", uses, ok)
	}
}
