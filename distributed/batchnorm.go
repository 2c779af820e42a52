package distributed

import (
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/allranks"
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
		allranks.Attach(g, pjrt.AllReduceMean)
	}
}
