// Package logger records hyper-parameters, metrics by step, images, histograms and files, in the
// formats of common tools: JSON lines, CSV, TensorBoard, MLflow, and curves as PNG. It knows
// nothing about training: a trainer, or a notebook's own loop, calls it on one rank.
//
//	board, err := logger.NewTensorBoard("runs/mnist/tensorboard")
//	check(err)
//	lines, err := logger.NewJSONLines("runs/mnist/metrics.jsonl")
//	check(err)
//	log := logger.NewMulti(logger.MultiOptions{}, board, lines) // never stops or slows the training
//	defer log.Close()
//
//	check(log.Params(map[string]any{"lr": 1e-3, "optimizer": "adam"}))
//	check(log.Scalars(100, map[string]float64{"train/loss": 0.31, "val/loss": 0.40}))
//
// Every logger continues an existing record: if it is opened again on the same file, folder or run,
// it appends, and earlier records stay readable. It first removes an incomplete line that another
// process left.
package logger
