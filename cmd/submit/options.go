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
	fs.BoolVar(&o.Local, "local", false, "run on this machine, not on a cluster")
	fs.IntVar(&o.Tasks, "tasks", 1, "ranks of a --local run; several are started by mpirun")
	fs.IntVar(&o.Nodes, "nodes", 1, "nodes of the cluster")
	fs.IntVar(&o.TasksPerNode, "tasks-per-node", 1, "ranks on each node; not given: one for each GPU of --gpus-per-node")
	fs.Var(&o.GPUs, "gpus-per-node", "GPUs on each node, of a type where one is given, such as a100:2")
	fs.IntVar(&o.CPUsPerTask, "cpus-per-task", 0, "CPUs for each rank (default: the cluster's)")
	fs.StringVar(&o.Mem, "mem", "", "memory of each node, such as 64G")
	fs.StringVar(&o.Time, "time", "", "time limit: minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S")
	fs.StringVar(&o.Partition, "partition", "", "partition")
	fs.StringVar(&o.Account, "account", "", "account that pays")
	fs.StringVar(&o.QOS, "qos", "", "quality of service")
	fs.StringVar(&o.Constraint, "constraint", "", "features that nodes must have")
	fs.StringVar(&o.Name, "name", "", "name of the job and of its run directory (default: the notebook's)")
	fs.StringArrayVar(&o.Env, "env", nil, "environment variable NAME=VALUE for the programs; repeatable")
	fs.StringArrayVar(&o.Secrets, "secret", nil, "variable of your shell that the programs get too, whose value is kept in no file; repeatable")
	fs.StringArrayVar(&o.Modules, "module", nil, "environment module to load; repeatable")
	fs.StringArrayVar(&o.Setup, "setup", nil, "shell command before the first step; repeatable")
	fs.StringArrayVar(&o.Directives, "directive", nil, "further option for sbatch, as --directive=--exclusive; repeatable")
	fs.StringVar(&o.MPI, "mpi", "auto", "srun's --mpi: auto, pmix, pmi2, none, ...")
	fs.StringVar(&o.MPILibrary, "mpi-library", "", "MPI library that the programs open: a path or a soname")
	fs.IntVar(&o.MaxRestarts, "max-restarts", defaultMaxRestarts, "how often the job may be started again: near its time limit, after a preemption or a node's failure, or when a rank of a training dies; 0: never")
	fs.DurationVar(&o.SignalLead, "signal-lead", 0, "how long before the time limit the programs are told to save (default: 90s, less for a short --time)")
	fs.StringVar(&o.Template, "template", "", "file of a batch-script template in place of the built-in one")
	fs.StringVar(&o.RunRoot, "run-root", defaultRunRoot, "folder of the run directories, on the shared file system")
	o.exportOptions.addFlags(fs, "run")
	o.fromOptions.addFlags(fs)
	fs.StringVar(&o.Platform, "platform", "", "XLA platform: cpu or cuda (default: cuda where there is a GPU)")
	fs.StringVar(&o.Devices, "devices", "", "XLA devices of each rank: a number, or all (default: 1, or all of a --local run with one rank)")
	fs.BoolVar(&o.DryRun, "dry-run", false, "print the batch script and write nothing")
	fs.BoolVar(&o.NoSubmit, "no-submit", false, "stage everything and print the sbatch command")
	fs.BoolVarP(&o.Follow, "follow", "F", false, "show rank 0's log and end as the job ends")
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
		return usage("%d notebooks: %q; submit takes one; arguments for its programs go behind --", len(own), own)
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
