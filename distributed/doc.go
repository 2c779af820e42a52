// Package distributed trains a GoMLX model with the same program on one device, on many devices or
// in many processes. It has the parts for your own training loop; package trainer has a complete
// loop, with validation, checkpoints and loggers.
//
//	world, err := distributed.Init()
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer world.Close()
//
//	loader, err := world.Loader(dataset, distributed.LoaderOptions{BatchSize: 64, Shuffle: true})
//	opt := world.Optimizer(optimizer.Adam().LearningRate(1e-3).Done())
//	trainer := train.NewTrainer(world.Backend(), store, model, loss, opt, nil, metrics)
//	for range epochs {
//		for metrics, err := range world.TrainSteps(trainer, loader, nil) {
//			...
//		}
//	}
//	result, err := world.Evaluate(ctx, trainer, test, 1000)
//
// Init detects what started the process (srun, mpirun, torchrun), so that the program runs
// unchanged in a notebook, on a laptop and on a cluster:
//
//   - A single rank uses one device, or with GONBATCH_DEVICES=all every device of the machine,
//     through XLA's own sharding.
//   - Each of several ranks uses one device, as in PyTorch's DistributedDataParallel. An all-reduce
//     inside the compiled training step averages the gradients. The ranks communicate through the
//     cluster's MPI, or over TCP if torchrun started them. On GPUs, XLA's own all-reduce
//     (NCCL) averages them.
//
// The batch size counts examples over all ranks and devices. The same hyper-parameters therefore
// give the same result on any number of them, with one exception: each rank has its own
// random numbers (dropout). In a loop of your own, a network with batch normalization also needs
// World.SyncBatchNorm. Only rank 0 should write results: see World.IsMain.
//
// Package collective has all-reduce, all-gather and the like for models of your own.
//
// A rank that dies, hangs or disagrees with the others ends all of them within seconds, and the
// report names it (package watch). Close is what distinguishes a finished rank from a lost one, so
// defer it. Abort ends all ranks on purpose. Check tests a job without a training run.
//
// docs/architecture.md lists the environment variables that Init reads.
package distributed
