package submit

import (
	"cmp"
	"time"

	"gonbatch/internal/rundir"
)

// JobSpec describes what a job runs and the resources that it needs. The same type is used from the
// command line's options to the run directory, which stores it as job.json. Zero numbers and empty
// strings leave the choice to the scheduler, except for Nodes and TasksPerNode, which must be set.
type JobSpec struct {
	// Name is the job's name in the scheduler.
	Name string
	// QueueName is the job's name in the queue, if that is another one: a sweep's lanes have names.
	QueueName string `json:",omitempty"`
	// Nodes and TasksPerNode determine the world size: one task is one rank.
	Nodes, TasksPerNode int
	// CPUsPerTask are the CPUs of each task, and GPUs are the GPUs of each node.
	CPUsPerTask int
	GPUs        GPUs
	// Mem is the memory of each node: a number of megabytes, or a number with a suffix K, M, G or
	// T.
	Mem string
	// Time is the time limit as ParseTime returns it: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or
	// UNLIMITED.
	Time string
	// Partition, Account, QOS and Constraint choose where the job runs and who pays.
	Partition, Account, QOS, Constraint string
	// Env is set in every task.
	Env map[string]string
	// Secrets are names of variables of the submitting shell that every task gets too. Their values
	// are stored only in the scheduler's copy of the job's environment.
	Secrets []string
	// Modules are loaded before the first cell, in this order.
	Modules []string
	// Setup are shell commands that run once, on the first node, before the first cell.
	Setup []string
	// Passed are those of PassedOptions that are set, by name; the value of a bare one is "".
	Passed map[string]string `json:",omitempty"`
	// Directives are more options of the scheduler: "--nice", "--comment=x".
	Directives []string
	// MPI is the value of srun's --mpi ("pmix", "pmi2", "none"); "" or "auto" detects it.
	MPI string
	// MPILibrary is the MPI library that the programs open: a path or a soname; "" detects it.
	MPILibrary string
	// OneDNN is the oneDNN library that the programs open on CPUs: OneDNNStaged or
	// rundir.OneDNNOff; "" is the library of each node, if it has one.
	OneDNN string
	// Platform is "cpu" or "cuda"; "" lets each rank find out.
	Platform string
	// Devices is the number of XLA devices that a rank drives, or "all"; "" is 1.
	Devices string
	// Cells run one after another; the first that fails ends the job.
	Cells []rundir.Cell
	// Args are passed to every cell's program after the cell's own, except to tests and shell
	// commands.
	Args []string
	// MoreArgs are those of "submit resume", and follow Args.
	MoreArgs []string
	// MaxRestarts is how often the job may restart: after its programs were told to stop, after a
	// preemption or a node failure, and when a rank of a training run has died; 0 is never.
	MaxRestarts int
	// SignalLead is how long before the time limit the programs are told to save and stop; 0 is
	// 90 s, or a quarter of a short time limit.
	SignalLead time.Duration
	// Notify are targets of notifications when the job starts and ends: URLs, to which JSON is
	// posted, and shell commands.
	Notify []string `json:",omitempty"`
	// Record is set if the job writes executed.ipynb; the run directory is prepared for that.
	Record bool
	// RunDir is the directory where the job reads its programs and writes its logs.
	RunDir rundir.Dir `json:"-"`
	// WorkDir is the directory in which the programs run: the notebook's.
	WorkDir string
	// PluginDir is the folder of the XLA plugin; "" is the run directory's.
	PluginDir string
	// DataDir is the folder of downloaded datasets.
	DataDir string
	// Template is the file of a batch-script template to use instead of the embedded one.
	Template string
}

// Tasks returns the total number of tasks: the world size.
func (s JobSpec) Tasks() int { return s.Nodes * s.TasksPerNode }

// RankEnv returns the part of a rank's environment that is the same for all cells and starts.
// devices is the default for a spec that doesn't set them.
func (s JobSpec) RankEnv(devices string) rundir.Env {
	return rundir.Env{
		Dir: s.RunDir, Devices: cmp.Or(s.Devices, devices), Platform: s.Platform, PluginDir: s.plugins(), MPILibrary: s.MPILibrary,
		OneDNN: s.oneDNN(), Data: s.DataDir, RequeueCode: rundir.RequeueCode,
	}
}

// plugins returns the folder of the XLA plugin.
func (s JobSpec) plugins() string {
	if s.PluginDir != "" {
		return s.PluginDir
	}
	return s.RunDir.Plugins()
}

// OneDNNStaged is the value of JobSpec.OneDNN for the library in the run directory.
const OneDNNStaged = "staged"

// oneDNN returns the ranks' value of rundir.EnvOneDNN. The run directory may have been moved since
// the job was submitted.
func (s JobSpec) oneDNN() string {
	if s.OneDNN == OneDNNStaged {
		return s.RunDir.OneDNN()
	}
	return s.OneDNN
}
