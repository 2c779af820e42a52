// Package cnn has layers for image networks, computed in ways that XLA compiles well for CPUs.
//
// The layers replace GoMLX's layers of the same names, with the same values, gradients and
// variables. On a CPU, with 32 or 64 bits, they choose a faster algorithm if there is one: a matrix
// product for a sum over pixels, and additions of shifted images for a convolution of few channels.
// If a library computes convolutions (package distributed/onednn), most of them stay whole.
// Elsewhere, such as on a GPU, they are GoMLX's own operations. The tests compare each layer with
// GoMLX's. TransposedConvolution has no counterpart there.
//
// Like GoMLX's layers, they build graphs: they take and return nodes, and panic on a wrong shape.
// The trainer or executor that calls them turns the panic into an error. On a CPU, the gradients of
// these layers have no gradients: for a loss that contains a gradient, use GoMLX's layers.
//
// Processor time of GoMLX's layers and of these, without a library, on one core of an Intel Xeon
// with AVX-512:
//
//	batch norm with its gradients, 32x32 pixels, 64 channels, batch 32   71.6 ms  12.8 ms
//	3x3 convolution, 28x28 pixels, 1 to 32 channels, batch 64             2.6 ms   0.5 ms
//	  its gradient of the image, of the kernel                     17.2, 18.1 ms  12.3, 15.0 ms
//	1x1 convolution, stride 2, 64 to 128 channels: gradient of kernel    14.9 ms   2.1 ms
//
//	x = cnn.Convolution(scope.In("conv1"), x).Channels(32).KernelSize(3).PadSame().MaxPool2x2().Relu().Done()
//	x = cnn.BatchNorm(scope.In("norm1"), x).Done()
package cnn
