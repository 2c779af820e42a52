// Package cnn has layers for networks of images, computed in ways that XLA compiles well for CPUs.
//
// They take the place of GoMLX's layers of the same names: same values, same gradients, same
// variables. On a CPU and with 32 or 64 bits they choose a faster way where there is one: a sum
// over pixels as a product of matrices, a convolution of few channels as additions of shifted
// images, and of many as Winograd's algorithm. Elsewhere, as on a GPU, they are GoMLX's own
// operations. The tests hold each layer to GoMLX's.
//
// As GoMLX's, they build graphs: they take and return nodes, and panic on a wrong shape; the
// trainer or executor that calls them turns the panic into an error. On a CPU, the gradients of
// these layers have no gradients themselves: for a loss that has a gradient in it, use GoMLX's.
//
//	x = cnn.Convolution(scope.In("conv1"), x).Channels(32).KernelSize(3).PadSame().MaxPool2x2().Relu().Done()
//	x = cnn.BatchNorm(scope.In("norm1"), x).Done()
package cnn
