// Package checkpoint saves and restores a training run: the variables of a model.Store, each rank's
// own state, and the progress of every component. It is storage only. It knows nothing about ranks
// and loops, and decides neither when to save nor when to stop. Package checkpoint/folder defines
// the layout on disk; weights are in safetensors files, which Python's tools can read:
//
//	checkpoints/main/step-00001200/
//	  checkpoint.json        step, world size, code hash, progress, metrics, and the checksum of each file
//	  model.safetensors      the model: "dense/weights" is the variable /dense/weights
//	  training.safetensors   the other variables: optimizer, random streams, counters, metrics
//	  ranks.safetensors      each rank's own state: "rank-0", "rank-1", ...
//
// During a training run, one process saves:
//
//	dir, err := checkpoint.Open("checkpoints/main", checkpoint.Options{Keep: 3, Metric: "val/loss"})
//	check(err)
//	writer := checkpoint.NewWriter(dir)
//	defer writer.Close()
//	for ... {
//		snapshot, err := writer.Take(store, nil) // a copy in host memory: only this stops the training
//		check(err)
//		snapshot.Metrics["val/loss"] = loss
//		check(writer.Save(snapshot)) // in the background
//	}
//
// To resume, before or after the model's graph is built:
//
//	snapshot, err := dir.Latest(func(message string) { log.Print(message) }) // skips damaged checkpoints
//	check(err)
//	if snapshot != nil {
//		check(snapshot.Restore(store))
//	}
package checkpoint
