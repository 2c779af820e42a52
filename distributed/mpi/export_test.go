package mpi

// SetMaxGather makes AllGather call MPI more often.
func SetMaxGather(n int) { maxGather = n }
