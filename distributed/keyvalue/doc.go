// Package keyvalue gives the ranks of a job a key-value store in rank 0. XLA needs one to run in
// several processes: its clients find one another through it, and NCCL uses it to start.
//
//	server, err := keyvalue.Listen(ctx, local)          // on rank 0, which sends server.Place() to the others
//	store := keyvalue.Dial(rank, server.Place())        // on every rank
//	defer store.Close()
//	err = store.Put("local_topology/cuda/3", topology)  // ErrExists if there is one
//	value, err := store.Get("global_topology/cuda", 5*time.Minute)
//
// A value never changes and is never removed. The package knows nothing about XLA, and moves none
// of the training's data. Each operation uses its own connection, which package network
// authenticates.
package keyvalue
