// Package augment changes images at random inside a model: as part of the compiled training step,
// on the device. It has the transforms of package data, which run on the loader's workers; with the
// same random numbers, both compute the same.
//
//	func net(scope *model.Scope, x *graph.Node) *graph.Node {
//		x = augment.RandomCrop(scope, x, 4)
//		x = augment.RandomFlip(scope, x, 0.5)
//		x = augment.RandomColor(scope, x, 0.4, 0.4, 0.4)
//		x = augment.Normalize(x, mean, std)
//		return models.ResNet18(10)(scope, x)
//	}
//
// Images are [batch, height, width, channels]. A result has the type of its images and, except for
// those of Resize and CenterCrop, their shape.
// Functions with a scope return their images unchanged unless the scope is training. They are
// differentiable, so a GAN's generator learns through them (Zhao et al., Differentiable
// Augmentation for Data-Efficient GAN Training, 2020, https://arxiv.org/abs/2006.10738).
//
// Random numbers are drawn as dropout's are: each example has its own, each step has new ones, and
// each rank draws from a stream of its own. So with several ranks, training sees other images than
// with one rank; with several devices of one process, it sees the same. A training run that resumes
// draws what it would have drawn. If images must be the same on any number of ranks, use
// data.Augment.
//
// Like GoMLX's layers, the functions build graphs: they take and return nodes, and panic on a wrong
// shape or argument. The trainer or executor that calls them turns the panic into an error.
package augment
