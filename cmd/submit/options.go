package main

import (
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"gonbatch/submit/config"
)

// submitOptions are what the command line, the environment and the configuration files say about one submission.
type submitOptions struct {
	// Notebook and Args come from the command line.
	Notebook string
	Args     []string

	Local bool
	Tasks int

	Nodes, TasksPerNode, CPUsPerTask               int
	GPUs                                           gpus
	Mem, Time, Partition, Account, QOS, Constraint string
	Name                                           string
	Env, Secrets, Modules, Setup, Directives       []string
	MPI, MPILibrary, Template, RunRoot             string
	Platform, Devices                              string
	MaxRestarts                                    int
	SignalLead                                     time.Duration
	DryRun, NoSubmit, Follow                       bool

	exportOptions
	fromOptions

	// workDir is the folder in which the programs run; "" is the notebook's.
	workDir string

	// config is where the values come from; nil in tests that need none.
	config *config.Config
}

func newSubmitOptions() *submitOptions { return &submitOptions{} }

// defaultMaxRestarts is enough for a week by time limits of a day, with some trouble between.
const defaultMaxRestarts = 10

// defaultRunRoot is the folder of all runs, below the current one.
const defaultRunRoot = "runs"

// addFlags declares the flags; their names are the keys of configuration files too.
func (o *submitOptions) addFlags(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.BoolVar(&o.Local, "local", false, "run on this machine instead of a cluster")
	fs.IntVar(&o.Tasks, "tasks", 1, "ranks of a --local run; mpirun starts more than one")
	fs.IntVar(&o.Nodes, "nodes", 1, "number of nodes")
	fs.IntVar(&o.TasksPerNode, "tasks-per-node", 1, "ranks on each node (with --gpus-per-node, the default is one for each GPU)")
	fs.Var(&o.GPUs, "gpus-per-node", "GPUs on each node: a number, or a type and a number, such as a100:2")
	fs.IntVar(&o.CPUsPerTask, "cpus-per-task", 0, "CPUs for each rank (default: the cluster's)")
	fs.StringVar(&o.Mem, "mem", "", "memory of each node, such as 64G")
	fs.StringVar(&o.Time, "time", "", "time limit: minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S")
	fs.StringVar(&o.Partition, "partition", "", "partition")
	fs.StringVar(&o.Account, "account", "", "account to charge")
	fs.StringVar(&o.QOS, "qos", "", "quality of service")
	fs.StringVar(&o.Constraint, "constraint", "", "features that the nodes must have")
	fs.StringVar(&o.Name, "name", "", "name of the job and of its run directory (default: the notebook's)")
	fs.StringArrayVar(&o.Env, "env", nil, "set environment variable NAME=VALUE for the programs; repeatable")
	fs.StringArrayVar(&o.Secrets, "secret", nil, "pass this variable of your shell to the programs without writing its value to a file; repeatable")
	fs.StringArrayVar(&o.Modules, "module", nil, "environment module to load; repeatable")
	fs.StringArrayVar(&o.Setup, "setup", nil, "shell command to run before the first cell; repeatable")
	fs.StringArrayVar(&o.Directives, "directive", nil, "extra option for sbatch, such as --directive=--exclusive; repeatable")
	fs.StringVar(&o.MPI, "mpi", "auto", "srun's --mpi: auto, pmix, pmi2, none, ...")
	fs.StringVar(&o.MPILibrary, "mpi-library", "", "MPI library for the programs to open: a path or a soname")
	fs.IntVar(&o.MaxRestarts, "max-restarts", defaultMaxRestarts, "restarts allowed, at the time limit, after a preemption or a node failure, or when a rank of a training dies; 0 for none")
	fs.DurationVar(&o.SignalLead, "signal-lead", 0, "how long before the time limit to tell the programs to save (default: 90s, less for a short --time)")
	fs.StringVar(&o.Template, "template", "", "batch-script template to use instead of the built-in one")
	fs.StringVar(&o.RunRoot, "run-root", defaultRunRoot, "folder for run directories, on the shared file system")
	o.exportOptions.addFlags(fs, "run")
	o.fromOptions.addFlags(fs)
	fs.StringVar(&o.Platform, "platform", "", "XLA platform: cpu or cuda (default: cuda if there is a GPU)")
	fs.StringVar(&o.Devices, "devices", "", "XLA devices of each rank: a number, or all (default: 1; all for a --local run with one rank)")
	fs.BoolVar(&o.DryRun, "dry-run", false, "print the batch script without writing anything")
	fs.BoolVar(&o.NoSubmit, "no-submit", false, "create the run directory and print the sbatch command without running it")
	fs.BoolVarP(&o.Follow, "follow", "F", false, "show rank 0's log until the job ends, and exit with the job's status")
	annotate(fs, config.FlagOnly, "dry-run", "no-submit", "cell", "param", "params-file", "from", "from-run")
	annotate(fs, config.Path, "template", "run-root")
}

// annotate marks flags. It panics on a name that is no flag, which is a mistake in this file.
func annotate(fs *pflag.FlagSet, key string, names ...string) {
	for _, name := range names {
		if err := fs.SetAnnotation(name, key, nil); err != nil {
			panic(err)
		}
	}
}

// parseArgs takes the notebook, and the programs' arguments, which begin at position dash (-1: there are none).
func (o *submitOptions) parseArgs(args []string, dash int) error {
	own := args
	if dash >= 0 {
		own, o.Args = args[:dash], args[dash:]
	}
	switch {
	case len(own) == 0:
		if err := o.checkParamsFile(); err != nil {
			return err
		}
		return usage("no notebook: give one, as submit --local notebook.ipynb (see submit --help)")
	case len(own) > 1 && isCommand(own[0]):
		return usage("unknown command %q (see submit --help)", own[0])
	case len(own) > 1:
		return usage("%d notebooks: %q; submit takes one; put arguments for its programs after --", len(own), own)
	}
	o.Notebook = own[0]
	return nil
}

// isCommand tells whether word looks like a mistyped command: no notebook's name, and no file.
func isCommand(word string) bool {
	_, err := os.Stat(word)
	return err != nil && !strings.Contains(word, ".")
}

// isSet tells whether anybody set key.
func (o *submitOptions) isSet(key string) bool {
	return o.config != nil && o.config.Origin(key) != config.Default
}

// onCommandLine tells whether the command line set key.
func (o *submitOptions) onCommandLine(key string) bool {
	return o.config != nil && strings.HasPrefix(o.config.Origin(key), "flag ")
}
