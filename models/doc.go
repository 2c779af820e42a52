// Package models has the networks that notebooks and benchmarks share: MNIST and ResNet18 for
// images, and GPT for texts, with its loss. They use layers of GoMLX and of package cnn.
//
// Its functions build graphs. Like GoMLX's own, they take and return nodes, and panic on a wrong
// shape. The trainer or executor that calls them turns the panic into an error.
//
//	trainer := train.NewTrainer(backend, store, models.MNIST, loss.SparseCategoricalCrossEntropyLogits, opt, nil, nil)
package models
