// Package history stores the executed cells of all sessions and all kernels of a user in one file
// of JSON lines.
//
//	store, err := history.Open(filepath.Join(stateDir, "history.jsonl"))
//	err = store.Add(history.Entry{Line: 1, Source: "%%\nfmt.Println(1)"})
//	entries, err := store.Tail(10)
package history
