// Package watch notices ranks that die or are stuck, says which and why, and ends the others. MPI
// and compiled programs can't: a rank whose peer is gone waits in its collective forever, or dies
// too and hides who was first.
//
//	w, err := watch.Start(ctx, watch.Config{Rank: rank, Size: size, Exchange: comm, Run: dir})
//	if err != nil { ... }
//	defer w.Close()
//	...
//	leave := w.Enter(watch.AllReduce, watch.Float32, len(values))
//	err = leave(comm.AllReduce(values))
//
// The ranks are connected by TCP beside what they compute with. Each sends what it is doing, twice
// a second, to two hubs, rank 0 and rank 1; rank 0 judges, and rank 1 where rank 0 is gone or
// silent. A process that ends breaks its connection, one that panics sends its last words on
// another, a stopped one falls silent. The hub that judges tells the others, writes failure.json,
// prints the report, and then all end.
//
// A rank that is only slow is not stuck: it is when others have waited for it, in a collective, for
// Config.Stuck. Ranks that disagree on a collective are told so at once.
//
// It does not restart anything, and it moves none of the training's data.
package watch
