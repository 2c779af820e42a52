// Package distributed trains a GoMLX model on many processes, many devices, or one, with the same
// program.
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
// Package trainer has a whole training loop over this one, with validation, checkpoints and
// loggers; this is for loops of one's own.
//
// Init finds out who started the process (srun, mpirun, ...), so that the program runs unchanged in
// a notebook, on a laptop and on a cluster:
//
//   - alone, it trains on one device, or on all devices of the machine by XLA's own sharding
//     (GONBATCH_DEVICES=all);
//   - as one rank of many, it drives one device, as PyTorch's DistributedDataParallel does, and the
//     gradients are averaged by an all-reduce inside the compiled training step. The ranks talk by
//     the cluster's MPI, or, started by torchrun, over TCP.
//
// The batch size is always the global one: the same hyper-parameters give the same training on any
// number of ranks and devices, except that each rank has its own random numbers (dropout), and its
// own statistics in batch normalization. What is to be kept, rank 0 alone should write: see
// World.IsMain.
//
// A rank that dies, is stuck, or disagrees with the others ends them all within seconds, and the
// report names it (package watch). Close is what tells a finished rank from a lost one, so defer
// it. Abort ends all ranks on purpose; Check tries the job before there is a training.
//
// docs/architecture.md lists the environment variables that are read.
package distributed
