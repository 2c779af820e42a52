// Package testplugin makes an XLA plugin that behaves as the one for GPUs does in a job of several
// processes, on a machine without a GPU. It is for tests only.
//
//	dir := testplugin.Build(t)  // GONBATCH_PLATFORM=cuda GONBATCH_PLUGIN_DIR=dir
//
// The plugin computes by XLA's plugin for CPUs. It says that it is "cuda", asks the key-value
// callbacks as XLA's GPU client does, knows the devices of all processes, under numbers that are
// not those of the ranks, and refuses what that one refuses: options that lack or are unknown, a
// program with another number of replicas or another device assignment, autotuning that has
// processes wait for one another. Its all-reduce goes over TCP, and, as NCCL's, waits forever for a
// process that has ended.
package testplugin
