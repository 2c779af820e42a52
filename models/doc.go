// Package models has the networks that notebooks and benchmarks share. Their layers are GoMLX's,
// and those of package cnn.
//
// Its functions build graphs. As GoMLX's own do, they take and return nodes, and panic on a wrong
// shape; the trainer or executor that calls them turns the panic into an error.
//
//	trainer := train.NewTrainer(backend, store, models.MNIST, loss.SparseCategoricalCrossEntropyLogits, opt, nil, nil)
package models
