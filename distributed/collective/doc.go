// Package collective has collective operations for your own models and training loops. They are
// graph-building functions: each becomes a part of the compiled program, in which the ranks compute
// together. On CPUs MPI or TCP moves the data, on GPUs XLA itself does (NCCL).
//
//	all := collective.Over(world)
//	total := all.AllReduce(x, collective.Sum)
//	everything := all.AllGather(x)
//
//	pairs, err := collective.Among(world, [][]int{{0, 1}, {2, 3}})
//	pairMean := pairs.AllReduce(x, collective.Mean)
//
// Values are float32, float64, float16, bfloat16, int32, int64 or bool, of any shape, even empty.
// Half precision is transferred as it is, computed in float32, in the order of the ranks, and
// rounded once. All ranks of a group get the same bits from an all-reduce, a broadcast and an
// all-gather.
//
// Every rank must build the same program: the same collectives, in the same order, with values of
// the same shapes. The ranks then run them in that order, whatever the program computes in between.
// If a rank calls another collective than the others, all of them fail before data is mixed up, and
// the error names both. A collective can't be in the body of a loop or another function of the
// graph.
// With one rank, and in groups of one, a collective returns its operand.
//
// # Gradients
//
// All collectives of floats are differentiable. Each rank has a loss of its own, and graph.Gradient
// gives the gradient of the sum of the losses of all ranks, because a value of one rank affects the
// losses of others:
//
//	AllReduce Sum      the sum of the ranks' gradients
//	AllReduce Mean     the mean of the ranks' gradients
//	AllReduce Min, Max the sum of the ranks' gradients, for the ranks that hold the extreme
//	AllGather          this rank's part of the sum of the ranks' gradients
//	ReduceScatter      the gradients of all parts, one after the other
//	AllToAll           the gradients of the parts, sent back
//	Broadcast          the sum of the ranks' gradients on the root, zero on the others
//
// If several ranks hold an extreme, they share its gradient equally. If it is NaN, nobody gets one.
//
// So if all ranks compute the same loss from the result of a collective, graph.Gradient counts it
// once for each rank: divide it by their number. World.Optimizer averages the gradients of the
// weights over the ranks, so with it, training follows the gradient of the mean of the ranks'
// losses, and nothing needs to be divided.
//
// The backward pass has collectives too, so every rank must differentiate the same outputs with
// respect to the same values. A collective inside a rematerialized block (Node.Checkpoint) keeps
// its result and ends the block.
//
// The package does not move values between host programs: World.Broadcast and World.AllGather do.
package collective
