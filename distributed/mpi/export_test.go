package mpi

import "time"

// SetMaxGather makes AllGather use more MPI calls.
func SetMaxGather(n int) { maxGather = n }

// SetFinalizeTime changes how long Close waits.
func SetFinalizeTime(d time.Duration) { finalizeTime = d }
