// Package folder keeps checkpoints on disk: one folder a step, which appears whole or not at all,
// says what is in it, and notices when that has changed. It knows files and their checksums,
// nothing of tensors or models: see package checkpoint for those.
//
//	checkpoints/main/
//	  step-00001200/
//	    checkpoint.json       step, time, progress, metrics, and size and SHA-256 of each file; it has a checksum of its own
//	    model.safetensors     ... the files
//	  .saving-step-00001300/  being written, or left by a process that was killed: the next save removes it
//
// A checkpoint is a draft until it is committed:
//
//	draft, err := folder.NewDraft("checkpoints/main", 1200)
//	check(err)
//	defer draft.Discard() // nothing, once it is committed
//	check(draft.Write("model.safetensors", func(w io.Writer) error { _, err := w.Write(weights); return err }))
//	err = draft.Commit(folder.Manifest{WorldSize: 4})
//
// Anyone may list them meanwhile, and read the newest that holds:
//
//	all, err := folder.List("checkpoints/main")
//	for _, c := range all {
//		fmt.Println(c.Step, c.Time, c.Size, c.Err)
//	}
//
// One process at a time saves to a folder; any number may read.
package folder
