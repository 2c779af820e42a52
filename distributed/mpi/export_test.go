package mpi

import "time"

// SetPart makes AllGather and ReduceScatter use more MPI calls.
var SetPart = setPart

// SetChunk makes AllReduce and Broadcast use more MPI calls.
var SetChunk = setChunk

// SetShare makes reductions proceed in shares.
var SetShare = setShare

// Share is what SetShare, or Comm.InMemory, has set.
var Share = share

// SetFinalizeTime changes how long Close waits.
func SetFinalizeTime(d time.Duration) { finalizeTime = d }

// OnlyFunneled makes Init ask MPI for support of calls from one thread only.
var OnlyFunneled = onlyFunneled

// InProgram runs a collective as a compiled program does.
var InProgram = inProgram

// FunctionsAreFound reports whether libraries that are opened at run time call this package's
// sched_yield and pthread_setname_np.
var FunctionsAreFound = functionsAreFound
