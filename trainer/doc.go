// Package trainer is the training loop that a researcher configures and does not write: epochs,
// validation, checkpoints from which a killed job goes on exactly, early stopping, learning-rate
// schedules, progress and loggers. It works the same in a notebook cell, on a laptop and on a
// cluster.
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
// A Task says what is trained: a model with one loss (Supervised), or a step with several
// (Adversarial, for a GAN's two models). A Config says how; it may also come from flags, a YAML
// file and the environment (Config.AddFlags). Callbacks reach into the loop.
//
// In a run directory rank 0 logs to metrics.jsonl, metrics.csv, TensorBoard, curves as PNG, and to
// MLflow where MLFLOW_TRACKING_URI is set: losses and metrics by step, the configuration,
// Trainer.LogImage's images, LogArtifact's files, histograms of weights and gradients
// (Config.LogHistogramsEvery), and to MLflow the model at the end. A logger that fails or hangs
// never stops the training, and one that goes on after a restart has each step once.
//
// The loop is over GoMLX's own train.Trainer, which compiles a step, its gradients and the
// optimizer's update into one XLA program; the all-reduce of the gradients is a part of that
// program (see package distributed).
//
// Each training needs a folder of checkpoints of its own: the default has the name of the run and
// of the training. In a program that trains several - the folds of a cross-validation, a sweep -
// give each trainer a Config.Name, or leave both to the defaults.
//
// Why a training ended is a part of its last checkpoint: started again it is over, until the limit
// that ended it is raised. A signal to stop (SIGTERM, SIGUSR1) is heard from New to the end of the
// world: during Fit the training saves and stops; outside of it the loggers end and the process
// too.
//
// All ranks call the same methods in the same order. Ranks decide together: what rank 0 finds - a
// metric, the clock, a checkpoint - holds for all.
package trainer
