package distributed

import (
	"fmt"
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers/norm"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/layerhooks"
)

// SyncBatchNorm is a graph-building function for your own training loop; package trainer calls it
// itself. Call it at the beginning of the model, with the graph of its input: in training,
// cnn.BatchNorm then normalizes by the mean and variance of the whole batch, over all ranks, so
// that a network with batch normalization trains alike on any number of ranks. (GoMLX's
// norm.BatchNorm uses each rank's own part.)
//
// Each layer then has two small all-reduces forwards and one backwards, so all ranks must run the
// same training steps. With one rank, SyncBatchNorm does nothing.
//
//	func network(scope *model.Scope, x *graph.Node) *graph.Node {
//		world.SyncBatchNorm(x.Graph())
//		...
func (w *World) SyncBatchNorm(g *graph.Graph) {
	if w.Size() > 1 {
		layerhooks.AttachMean(g, pjrt.AllReduceMean)
	}
}

// warnOfLocalNorms warns once if SyncBatchNorm was called, and the step in g has more batch
// normalizations than those of cnn.BatchNorm.
func (w *World) warnOfLocalNorms(store *model.Store, g *graph.Graph) {
	synchronized, ok := layerhooks.MeanUses(g)
	if !ok || !w.IsMain() {
		return
	}
	all := 0
	for v := range store.IterVariables() {
		if v.Name() == "avg_weight" && strings.HasSuffix(v.Path(), "/"+norm.BatchNormalizationScopeName+"/avg_weight") && v.ChangedInGraph(g) {
			all++
		}
	}
	line := fmt.Sprintf("%d of the model's %d batch normalizations use each rank's own part of the batch: replace norm.BatchNorm by cnn.BatchNorm", all-synchronized, all)
	if all > synchronized {
		w.warnOnce(line)
	}
}
