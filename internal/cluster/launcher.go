package cluster

// launchers are looked for in this order: the one nearest to the process comes first, as a launcher
// that runs inside another one leaves the outer one's variables in place.
//
//  1. torchrun itself, which a job may start on each of its nodes by srun or mpirun
//  2. Open MPI's mpirun, and
//  3. MPICH's, which may run in a job of SLURM: SLURM's variables are then those of the step that
//     started mpirun's daemons
//  4. srun. A batch script has SLURM_PROCID too, but no SLURM_STEP_ID: a program that it starts
//     without srun is alone.
//  5. another launcher with torchrun's variables. Scripts set them inside srun as well, with the
//     same ranks; MPI is the better connection there.
//
// Without any of them a process is alone.
var launchers = []struct {
	launcher Launcher
	// rank is the variable with the rank; the launcher is there if both are set.
	rank, with string
	// read reads the rest.
	read func(*reader) Environment
}{
	{Torchrun, "RANK", torchrunID, readTorchrun},
	{OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", readOpenMPI},
	{PMI, "PMI_RANK", "PMI_SIZE", readPMI},
	{Slurm, "SLURM_PROCID", "SLURM_STEP_ID", readSlurm},
	{Torchrun, "RANK", "WORLD_SIZE", readTorchrun},
}

// readOpenMPI reads what Open MPI's mpirun sets:
// https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
func readOpenMPI(r *reader) Environment {
	return Environment{
		Size:      r.number(1, "OMPI_COMM_WORLD_SIZE"),
		LocalRank: r.number(0, "OMPI_COMM_WORLD_LOCAL_RANK"),
		LocalSize: r.number(0, "OMPI_COMM_WORLD_LOCAL_SIZE"),
	}
}

// readPMI reads the Process Management Interface as Hydra (MPICH, Intel MPI) and srun --mpi=pmi2
// set it. Hydra adds the MPI_LOCAL... variables; under srun, SLURM's own have the local rank.
func readPMI(r *reader) Environment {
	return Environment{
		Size:      r.number(1, "PMI_SIZE"),
		LocalRank: r.number(0, "MPI_LOCALRANKID", "SLURM_LOCALID"),
		LocalSize: r.number(0, "MPI_LOCALNRANKS"),
	}
}

// readSlurm reads what srun sets:
// https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
func readSlurm(r *reader) Environment {
	return Environment{
		Size:      r.number(1, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
		LocalRank: r.number(0, "SLURM_LOCALID"),
	}
}

// What a launcher started inside a job of another one must not inherit, or its ranks would have the
// other's numbers.
var (
	// Prefixes begin the names of variables by which MPI's launchers number ranks.
	Prefixes = []string{"PMIX_SERVER_", "OMPI_COMM_WORLD_"}
	// Names are single ones, and torchrun's. Others that begin like them are settings.
	Names = []string{"PMI_FD", "PMI_ID", "PMI_JOBID", "PMI_PORT", "PMI_RANK", "PMI_SIZE", "PMIX_NAMESPACE", "PMIX_RANK", torchrunID}
)
