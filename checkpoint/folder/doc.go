// Package folder stores checkpoints on disk, each in a folder that appears complete or not at all,
// lists its checkpoints, and detects changes. It handles files and checksums, not tensors or
// models; for those, see package checkpoint.
//
//	checkpoints/main/
//	  step-00001200/
//	    checkpoint.json       step, time, progress, metrics, size and SHA-256 of each file, and its own checksum
//	    model.safetensors     ... the files
//	  .saving-step-00001300/  being written, or left by a killed process: the next save removes it
//
// A checkpoint is a draft until it is committed:
//
//	draft, err := folder.NewDraft("checkpoints/main", 1200)
//	check(err)
//	defer draft.Discard() // does nothing once it is committed
//	check(draft.Write("model.safetensors", func(w io.Writer) error { _, err := w.Write(weights); return err }))
//	err = draft.Commit(folder.Manifest{WorldSize: 4})
//
// Meanwhile others may list the checkpoints, and read the newest valid one:
//
//	all, err := folder.List("checkpoints/main")
//	for _, c := range all {
//		fmt.Println(c.Step, c.Time, c.Size, c.Err)
//	}
//
// Only one process at a time may save to a folder. Any number may read.
package folder
