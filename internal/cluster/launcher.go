package cluster

// launcherVariables are those of a launcher.
type launcherVariables struct {
	launcher Launcher
	// rank is the variable with the rank; the launcher is present if both variables are set.
	rank, with string
	// read reads the rest.
	read func(*reader) Environment
}

// launchers are checked in this order. The launcher nearest to the process comes first, because a
// launcher that runs inside another one leaves the outer one's variables in place.
//
//  1. torchrun itself, which a job may start on each of its nodes with srun or mpirun
//  2. Open MPI's mpirun, and
//  3. MPICH's, which may run in a SLURM job: SLURM's variables are then those of the step that
//     started mpirun's daemons
//  4. srun. A batch script has SLURM_PROCID too, but no SLURM_STEP_ID: a program that it starts
//     without srun is alone.
//  5. another launcher with torchrun's variables. Scripts also set them inside srun, with the
//     same ranks; there, MPI is the better connection.
//
// If none is found, a process is alone.
var launchers = []launcherVariables{
	{Torchrun, "RANK", torchrunID, readTorchrun},
	{OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", readOpenMPI},
	{PMI, "PMI_RANK", "PMI_SIZE", readPMI},
	{Slurm, "SLURM_PROCID", stepVariable, readSlurm},
	{Torchrun, "RANK", "WORLD_SIZE", readTorchrun},
}

// readOpenMPI reads the variables of Open MPI's mpirun:
// https://docs.open-mpi.org/en/main/tuning-apps/environment-var.html
func readOpenMPI(r *reader) Environment {
	return Environment{
		Size:      r.number(1, "OMPI_COMM_WORLD_SIZE"),
		LocalRank: r.number(0, "OMPI_COMM_WORLD_LOCAL_RANK"),
		LocalSize: r.number(0, "OMPI_COMM_WORLD_LOCAL_SIZE"),
	}
}

// readPMI reads the variables of the Process Management Interface, as set by Hydra (MPICH, Intel
// MPI) and srun --mpi=pmi2. Hydra adds the MPI_LOCAL... variables; under srun, SLURM's own
// variables have the local rank.
func readPMI(r *reader) Environment {
	return Environment{
		Size:      r.number(1, "PMI_SIZE"),
		LocalRank: r.number(0, "MPI_LOCALRANKID", "SLURM_LOCALID"),
		LocalSize: r.number(0, "MPI_LOCALNRANKS"),
	}
}

// readSlurm reads the variables of srun:
// https://slurm.schedmd.com/srun.html#SECTION_OUTPUT-ENVIRONMENT-VARIABLES
func readSlurm(r *reader) Environment {
	return Environment{
		Size:      r.number(1, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"),
		LocalRank: r.number(0, "SLURM_LOCALID"),
	}
}

// PMIFile is the variable with the number of the file by which PMI's launchers take messages.
const PMIFile = "PMI_FD"

// Variables that a launcher must not inherit if it starts inside another one's job, or its ranks
// would take the other's numbers.
var (
	// Prefixes begin the names of the variables with which MPI's launchers number ranks.
	Prefixes = []string{"PMIX_SERVER_", "OMPI_COMM_WORLD_"}
	// Names are individual variables, including torchrun's. Other variables with the same prefixes
	// are settings.
	Names = []string{PMIFile, "PMI_ID", "PMI_JOBID", "PMI_PORT", "PMI_RANK", "PMI_SIZE", "PMIX_NAMESPACE", "PMIX_RANK", torchrunID}
)
