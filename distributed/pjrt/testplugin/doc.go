// Package testplugin builds an XLA plugin that behaves like the one for GPUs in a job of several
// processes, on a machine without a GPU. It is for tests only.
//
//	dir := testplugin.Build(t)  // GONBATCH_PLATFORM=cuda GONBATCH_PLUGIN_DIR=dir
//
// The plugin computes with XLA's plugin for CPUs. It calls itself "cuda", calls the key-value
// callbacks as XLA's GPU client does, and knows the devices of all processes, whose numbers differ
// from the ranks. It refuses what the GPU plugin refuses: missing or unknown options, a program
// with another number of replicas or another device assignment, and autotuning that makes processes
// wait for one another. Its all-reduce uses TCP and, like NCCL's, waits forever for a process that
// has ended.
package testplugin
