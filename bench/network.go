package main

import "slices"

// network is a network whose training step is measured. bench/step and bench/peers implement it.
type network struct {
	name, title string
	batch       int // inputs for each rank
	slower      int // how many times as long as in the first network a step takes, roughly
	images      bool
	products    bool      // Products of matrices take most of a step.
	gradients   gradients // For the cost model.
	zero1       bool      // The optimizer's state is large: with zero1, the ranks divide it.
}

// resNetConvolutions are the elements of ResNet-18's weights of 1 MiB or more.
var resNetConvolutions = []int{
	9 * 128 * 256, 9 * 256 * 256, 9 * 256 * 256, 9 * 256 * 256,
	9 * 256 * 512, 9 * 512 * 512, 9 * 512 * 512, 9 * 512 * 512,
}

var networks = []network{
	{name: "cnn", title: "CNN: 421,642 parameters, 28x28 images, Adam", batch: 64, slower: 1, images: true, gradients: gradients{421_642, 4 * 18_816, []int{3136 * 128}}},
	{name: "resnet18", title: "ResNet-18: 11,173,962 parameters, 32x32 images, batch normalization, SGD with momentum", batch: 32, slower: 20, images: true, gradients: gradients{11_173_962, 0, resNetConvolutions}},
	{name: "mlp", title: "MLP: 100,728,842 parameters, 4,096 numbers, Adam", batch: 64, slower: 30, products: true, zero1: true, gradients: gradients{100_728_842, 4 * 4096 * 4096, slices.Repeat([]int{4096 * 4096}, 6)}},
	{name: "gpt", title: "GPT: 10,747,392 parameters, 6 layers of width 384 with 6 heads, 256 tokens of 256 kinds, Adam", batch: 4, slower: 30, products: true, gradients: gradients{10_747_392, 0, slices.Repeat([]int{384 * 3 * 384, 384 * 4 * 384, 4 * 384 * 384}, 6)}},
}

func networkNames() (names []string) {
	for _, n := range networks {
		names = append(names, n.name)
	}
	return names
}

// of returns the options for this network: a slower one gets fewer steps.
func (n network) of(opts options) options {
	opts.batch = n.batch
	opts.steps = max(opts.steps/n.slower, min(opts.steps, 3))
	return opts
}
