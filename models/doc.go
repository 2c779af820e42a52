// Package models has networks. Linear and MLP are for features of any kind. MNIST, ResNet18,
// ResNet50 and ViT classify images, UNet classifies their pixels, DCGANGenerator and
// DCGANDiscriminator make images, and GPT, with its loss, writes texts. They use layers of GoMLX
// and of package cnn.
//
// Its functions build graphs. Like GoMLX's own, they take and return nodes, and panic on a wrong
// shape. The trainer or executor that calls them turns the panic into an error.
//
//	trainer := train.NewTrainer(backend, store, models.MNIST, loss.SparseCategoricalCrossEntropyLogits, opt, nil, nil)
package models
