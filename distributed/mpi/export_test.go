package mpi

import "time"

// SetMaxGather makes AllGather call MPI more often.
func SetMaxGather(n int) { maxGather = n }

// SetFinalizeTime makes Close wait for another time.
func SetFinalizeTime(d time.Duration) { finalizeTime = d }
