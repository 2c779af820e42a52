// Package forecast is the vocabulary of what a training step will take on GPUs: the GPUs that are
// known, what submit asks a program, and what the program answers. It computes what follows from
// the answer, and compiles nothing.
//
//	gpu, err := forecast.Find("h100")
//	floor := gpu.Floor(world, answer) // Of the step's time.
package forecast
