// Package watch detects ranks that die or get stuck, reports which rank failed and why, and ends
// the others. MPI and compiled programs can't do that: if a rank fails, the others wait in their
// collective forever, or die too, which hides the rank that failed first.
//
//	w, err := watch.Start(ctx, watch.Config{Rank: rank, Size: size, Exchange: comm, Run: dir})
//	if err != nil { ... }
//	defer w.Close()
//	...
//	leave := w.Enter(watch.AllReduce, watch.Float32, len(values))
//	err = leave(comm.AllReduce(values))
//
// The ranks are connected by TCP, separately from the transport of their collectives. Twice a
// second, each rank sends its state to two hubs, rank 0 and rank 1. Rank 0 judges; rank 1 takes
// over if rank 0 has ended or is silent. When a process ends, its connection closes. When it
// panics, the text arrives on a second connection. When it is stopped, it falls silent. The judging
// hub informs the other ranks, writes failure.json and prints the report. Then all ranks end.
//
// A rank that is only slow is not stuck: it counts as stuck only after others have waited for it in
// a collective for Config.Stuck, and not while it works alone (package internal/solo). If ranks
// disagree on a collective, the job ends within seconds.
//
// The package restarts nothing, and moves none of the training's data.
package watch
