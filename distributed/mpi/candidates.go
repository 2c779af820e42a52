package mpi

import (
	"slices"

	"gonbatch/internal/rundir"
)

var (
	openMPI = []string{"libmpi.so.40", "libmpi.so.80"}
	mpich   = []string{"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12", "libmpi_gnu_123.so.12"}
	// anyMPI is the name that only development packages have; either kind uses it.
	anyMPI = []string{"libmpi.so"}
)

// Candidates lists the libraries to try, best first. GONBATCH_MPI_LIBRARY is the only one if set.
// Otherwise the launcher decides: an MPI only finds its peers when the launcher speaks its protocol
// (PMIx: Open MPI; PMI: MPICH), else each rank would be a world of one.
func Candidates(getenv func(string) string) []string {
	if library := getenv(rundir.EnvMPILibrary); library != "" {
		return []string{library}
	}
	if startedByPMI(getenv) {
		return slices.Concat(mpich, anyMPI, openMPI)
	}
	return slices.Concat(openMPI, anyMPI, mpich)
}

func startedByPMI(getenv func(string) string) bool {
	if getenv("OMPI_COMM_WORLD_SIZE") != "" || getenv("PMIX_RANK") != "" {
		return false
	}
	return getenv("PMI_RANK") != "" || getenv("PMI_FD") != ""
}
