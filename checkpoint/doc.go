// Package checkpoint stores a training, and brings it back: the variables of a model.Store, what
// ranks hold of their own, and the progress of all that takes part. It is storage only: it knows no
// ranks and no loops, and decides neither when to save nor when to stop. The folders on disk are
// those of package checkpoint/folder; weights are in safetensors files, which Python's tools read:
//
//	checkpoints/main/step-00001200/
//	  checkpoint.json        step, world size, code hash, progress, metrics, and the checksum of each file
//	  model.safetensors      the model: "dense/weights" is the variable /dense/weights
//	  training.safetensors   the other variables: optimizer, random streams, counters, metrics
//	  ranks.safetensors      the bytes that each rank holds of its own: "rank-0", "rank-1", ...
//
// While training, one process saves:
//
//	dir, err := checkpoint.Open("checkpoints/main", checkpoint.Options{Keep: 3, Metric: "val/loss"})
//	check(err)
//	writer := checkpoint.NewWriter(dir)
//	defer writer.Close()
//	for ... {
//		snapshot, err := writer.Take(store) // a copy in host memory: the only thing that stops the training
//		check(err)
//		snapshot.Metrics["val/loss"] = loss
//		check(writer.Save(snapshot)) // goes on in the background
//	}
//
// To go on, before or after the model's graph is built:
//
//	snapshot, err := dir.Latest(func(message string) { log.Print(message) }) // a damaged one is passed over for the one before
//	check(err)
//	if snapshot != nil {
//		check(snapshot.Restore(store))
//	}
package checkpoint
