package cluster

// detectOpenMPI reads what Open MPI's mpirun sets:
// https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
func detectOpenMPI(r *reader) (Environment, bool) {
	if !r.has("OMPI_COMM_WORLD_SIZE") {
		return Environment{}, false
	}
	return Environment{
		Rank:      r.number(0, "OMPI_COMM_WORLD_RANK"),
		Size:      r.number(1, "OMPI_COMM_WORLD_SIZE"),
		LocalRank: r.number(0, "OMPI_COMM_WORLD_LOCAL_RANK"),
		LocalSize: r.number(0, "OMPI_COMM_WORLD_LOCAL_SIZE"),
	}, true
}
