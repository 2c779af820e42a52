// Command bench measures gonbatch beside its peers, in one run, and writes what it finds to
// bench/results.
//
// The training step: a CNN, ResNet-18 and a large MLP in gonbatch and in PyTorch DDP, at its
// defaults and at its best settings, and the CNN in JAX; on one rank and on two, one core each. All
// take turns in each round, so that a machine that slows down does so for all; a figure is the
// median over the rounds.
//
// The trainer: what package trainer costs over a hand-written loop, beside what Lightning costs
// over one in PyTorch, and what a training feels of a checkpoint.
//
// Submission: the time of `submit` on a real SLURM cluster (tests/cluster) with an unchanged
// notebook, and after one changed cell.
//
// Checkpoints: what a training waits for, and how long saving and loading take, beside torch.save
// and safetensors' own library.
//
// Export: `submit export` of notebooks of 10, 200 and 2,000 cells beside `jupyter nbconvert --to
// script`.
//
// Check: the time of `submit check` of a notebook by GoMLX's authors, the first time and later.
//
// Kernels: what a client of gonbatch's Jupyter kernel waits for, beside GoNB by itself and
// ipykernel. It needs what `make setup` installs.
//
// Compilation: the first step of a new process, of `submit --local` and of a cell, with the compile
// cache and without it.
//
// Loading: training steps beside a dataset that waits, and JPEGs from a folder, beside PyTorch's
// DataLoader.
//
//	make bench                     # installs the peers in .cache/bench-venv first
//	go run ./bench -only step -network cnn -rounds 3
package main
