package cluster

// detectPMI reads the Process Management Interface as Hydra (MPICH, Intel MPI) and srun --mpi=pmi2 set it. Hydra adds the
// MPI_LOCAL... variables; under srun, SLURM's own tell the local rank.
func detectPMI(r *reader) (Environment, bool) {
	if !r.has("PMI_RANK") || !r.has("PMI_SIZE") {
		return Environment{}, false
	}
	return Environment{
		Rank:      r.number(0, "PMI_RANK"),
		Size:      r.number(1, "PMI_SIZE"),
		LocalRank: r.number(0, "MPI_LOCALRANKID", "SLURM_LOCALID"),
		LocalSize: r.number(0, "MPI_LOCALNRANKS"),
	}, true
}
