// Command bench compares gonbatch with its peers, in one run, and writes the results to
// bench/results.
//
// The training step: a CNN, ResNet-18 and a large MLP in gonbatch and in PyTorch DDP, with its
// defaults and with its best settings, and the CNN in JAX; on one rank and on two, with one core
// each. The contenders take turns in each round, so that a slowdown of the machine affects all of
// them. A figure is the median over the rounds.
//
// The trainer: how much slower package trainer is than a hand-written loop, compared with Lightning
// and a hand-written loop in PyTorch, and how much a checkpoint delays a training run.
//
// Submission: what submit's users wait for on a real SLURM cluster (tests/cluster), next to
// submitit, nbconvert, papermill and SLURM's own commands: the submission of a notebook and of a
// sweep, the list of 10,000 runs, the status of 300 jobs, and the lines of a running job's log.
//
// Checkpoints: how long a training run waits, and how long saving and loading take, compared with
// torch.save and with safetensors' own library.
//
// Export: `submit export` of notebooks of 10, 200 and 2,000 cells, compared with `jupyter nbconvert
// --to script`.
//
// Check: the time of `submit check` of a notebook by GoMLX's authors, the first time and later.
//
// Kernels: how long a client waits for gonbatch's Jupyter kernel, compared with plain GoNB and
// ipykernel. It needs what `make setup` installs.
//
// Compilation: the first step of a new process, of `submit --local` and of a cell, with and without
// the compile cache.
//
// Loading: training steps while a dataset waits, JPEGs from a folder, and how long the device waits
// for batches, next to PyTorch's DataLoader with several decoders; and the memory of a billion
// examples.
//
// Inference: the latency and the throughput of the CNN and of ResNet-18 by batch size, next to
// PyTorch.
//
// All-reduce: in a compiled program, over Open MPI and over our TCP, compared with MPI_Allreduce of
// the same library in a C program, and with PyTorch's gloo.
//
// Control: 1,024 light processes that meet and watch one another on this machine.
//
// Nodes: training steps of two ranks on two nodes, which are network namespaces that a link of 1,
// 10 or 25 Gbit/s connects, over TCP and Open MPI, with and without overlap, next to PyTorch DDP;
// and by the size of the buckets in which gradients travel. It needs root, and takes almost two
// hours.
//
// Scaling: the cost model of docs/scaling.md, held against training steps on up to 4 ranks, and
// against those on two nodes. It needs the results of allreduce.
//
// gonbatch computes with the oneDNN that tests/setup.sh installs, unless GONBATCH_ONEDNN names
// another library, or is off. The headings of the results say which.
//
//	make bench                     # installs the peers in .cache/bench-venv first
//	go run ./bench -only step -network cnn -rounds 3
//	go run ./bench -only scaling -picture docs/images/scaling.svg
//	GONBATCH_ONEDNN=off go run ./bench -only step -out /tmp/results-of-xla
package main
