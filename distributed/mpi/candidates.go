package mpi

import (
	"slices"

	"gonbatch/internal/rundir"
)

var (
	openMPI = []string{"libmpi.so.40", "libmpi.so.80"}
	mpich   = []string{"libmpich.so.12", "libmpi.so.12", "libmpi_cray.so.12", "libmpi_gnu_123.so.12"}
	// anyMPI is the name in development packages of both kinds.
	anyMPI = []string{"libmpi.so"}
)

// Candidates lists the libraries to try, best first. If GONBATCH_MPI_LIBRARY is set, it is the only
// one. Otherwise the order depends on the launcher: an MPI finds the other ranks only if the
// launcher uses its protocol (PMIx for Open MPI, PMI for MPICH). Otherwise each rank would be
// alone.
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
