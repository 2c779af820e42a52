package submit

import (
	"time"

	"gonbatch/internal/rundir"
)

// JobSpec says what a job runs and what it needs. It is the same from the options of the command
// line to the run directory, which keeps it as job.json. Zero numbers and empty texts leave the
// choice to the scheduler, except Nodes and TasksPerNode, which must be given.
type JobSpec struct {
	// Name is the job's name as the scheduler shows it.
	Name string
	// Nodes and TasksPerNode give the world's size: one task is one rank.
	Nodes, TasksPerNode int
	// CPUsPerTask and GPUs are what each task and each node gets.
	CPUsPerTask int
	GPUs        GPUs
	// Mem is the memory of each node: a number of megabytes, or one with a suffix K, M, G or T.
	Mem string
	// Time is the time limit in one of sbatch's forms: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S,
	// UNLIMITED.
	Time string
	// Partition, Account, QOS and Constraint choose where the job runs and who pays.
	Partition, Account, QOS, Constraint string
	// Env is set in every task.
	Env map[string]string
	// Secrets are names of variables of the submitting shell that every task gets too. Their values
	// are kept nowhere but in the scheduler's own copy of the job's environment.
	Secrets []string
	// Modules are loaded before the first cell, in this order.
	Modules []string
	// Setup are shell commands that run once, on the first node, before the first cell.
	Setup []string
	// Directives are further options of the scheduler: "--exclusive", "--mail-type=END".
	Directives []string
	// MPI is the kind of srun's --mpi ("pmix", "pmi2", "none"); "" or "auto" finds it.
	MPI string
	// MPILibrary is the MPI library that the programs open: a path or a soname; "" finds it.
	MPILibrary string
	// Platform is "cpu" or "cuda"; "" lets each rank find out.
	Platform string
	// Devices is how many XLA devices a rank drives: a number or "all"; "" is 1.
	Devices string
	// Cells run one after the other; the first that fails ends the job.
	Cells []rundir.Cell
	// Args are passed to every cell's program, after the cell's own.
	Args []string
	// MaxRestarts is how often the job may be started again: after its programs were told to stop,
	// after a preemption or a node's failure, and when a rank of a training has died; 0 is never.
	MaxRestarts int
	// SignalLead is how long before the time limit the programs are told to save and stop; 0 is
	// DefaultSignalLead, or a quarter of a short time limit.
	SignalLead time.Duration
	// Record tells that executed.ipynb is written: the run directory has what that needs.
	Record bool
	// RunDir is where the job reads its programs and writes its logs.
	RunDir rundir.Dir `json:"-"`
	// WorkDir is the directory in which the programs run: the notebook's own.
	WorkDir string
	// PluginDir is the folder of the XLA plugin; "" is the run directory's own.
	PluginDir string
	// DataDir is the folder of downloaded datasets.
	DataDir string
	// Template is the file of a batch-script template to use instead of the embedded one.
	Template string
}

// Tasks is the number of tasks in all: the world's size.
func (s JobSpec) Tasks() int { return s.Nodes * s.TasksPerNode }
