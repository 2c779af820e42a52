// Package estimate asks a program what its first training step takes on GPUs, before a job with
// them is queued, and looks for the largest batch that fits. The program computes the answer itself
// (see package distributed), as a process of this machine that ends there.
//
//	result, err := estimate.Ask(ctx, shell, program, world)
package estimate
