// Package keyvalue gives the ranks of a job a store of keys and values in rank 0, as XLA wants it
// of those who run it in several processes: its clients find one another, and NCCL starts, by it.
//
//	server, err := keyvalue.Listen(ctx, local)          // On rank 0, which tells the others
//	store := keyvalue.Dial(rank, server.Place())        // where it is. On every rank:
//	defer store.Close()
//	err = store.Put("local_topology/cuda/3", topology)  // ErrExists if there is one
//	value, err := store.Get("global_topology/cuda", 5*time.Minute)
//
// A value never changes and is never removed. The package knows nothing of XLA, and moves none of
// the training's data. Each operation has a connection of its own, which package network
// authenticates.
package keyvalue
