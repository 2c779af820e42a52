// Package trainer has a configurable training loop: epochs, validation, checkpoints and exact
// resuming, early stopping, learning-rate schedules, progress and loggers. It works the same in a
// notebook cell, on a laptop and on a cluster. To write your own loop, use package distributed
// instead.
//
//	world, err := distributed.Init()
//	check(err)
//	defer world.Close()
//
//	task := trainer.Supervised(digits, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done(), accuracy)
//	t, err := trainer.New(world, trainer.Config{MaxEpochs: 10, BatchSize: 64, Seed: 1}, task)
//	check(err)
//	check(t.Fit(ctx, trainSet, validationSet))
//	metrics, err := t.Test(ctx, testSet)
//
// A [Task] says what to train: a model with one loss ([Supervised]), or a step with several losses
// ([Adversarial], for the two models of a GAN). A [Config] says how; flags, a YAML file and the
// environment can change it (see [Config.AddFlags]). A [Callback] is called at points of the loop.
//
// In a run directory, rank 0 logs to metrics.jsonl, metrics.csv, TensorBoard, curves as PNG, and to
// MLflow if MLFLOW_TRACKING_URI is set. It logs losses and metrics by step, the configuration, the
// images of LogImage, the files of LogArtifact, histograms of weights and gradients
// (Config.LogHistogramsEvery), and to MLflow also the model at the end. A logger that fails or
// hangs never stops the training. After a restart, a logger has each step once.
//
// A step, its gradients and the optimizer's update are compiled into one XLA program. The
// all-reduce of the gradients is part of that program (see package distributed).
//
// # Checkpoints
//
// Each training run needs its own folder of checkpoints. The default name of the folder comes from
// the run and the training. In a program with several training runs, such as the folds of a
// cross-validation, give each Config a Name, or leave all of them to the defaults.
//
// The last checkpoint records why its training ended. If you start the training again, it stays
// ended until you raise the limit that ended it. A signal to stop (SIGTERM, SIGUSR1) is handled
// from New until the world is closed: during Fit, the training saves and stops; outside Fit, the
// loggers finish and the process exits.
//
// # Ranks
//
// All ranks must call the same methods in the same order. They decide together: what rank 0 finds
// (a metric, the time, a checkpoint) holds for all ranks.
package trainer
