package main

import (
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"gonbatch/internal/plural"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/run"
	"gonbatch/submit/stage"
)

// submitOptions are the options of one submission, from the command line, the environment and the
// configuration files.
type submitOptions struct {
	run.Request
	// SchedulerName is a scheduler's name; Local is short for this machine's.
	SchedulerName string
	Local         bool
	Tasks         int
	Env           []string
	RunRoot       string

	flags *pflag.FlagSet
}

// defaultMaxRestarts is enough for a week of one-day time limits, with a few failures.
const defaultMaxRestarts = 10

// defaultRunRoot is the folder of all runs, below the current one.
const defaultRunRoot = "runs"

func newSubmitOptions() *submitOptions {
	return &submitOptions{Request: run.Request{Job: submit.JobSpec{Nodes: 1, TasksPerNode: 1, MPI: "auto", MaxRestarts: defaultMaxRestarts}}}
}

// addFlags declares the flags; their names are the keys of configuration files too.
func (o *submitOptions) addFlags(fs *pflag.FlagSet) {
	o.flags = fs
	fs.SortFlags = false
	names := schedulerNames()
	fs.BoolVar(&o.Local, "local", false, "run on this machine instead of a cluster; short for --scheduler=local")
	fs.StringVar(&o.SchedulerName, "scheduler", names[0], "what runs the job: "+strings.Join(names, ", "))
	config.IntVar(fs, &o.Tasks, "tasks", 1, "ranks of a --local run; mpirun starts more than one, or submit itself where there is none")
	addJobFlags(fs, &o.Job)
	fs.StringArrayVar(&o.Env, "env", nil, "set environment variable NAME=VALUE for the programs; repeatable")
	addRunRootTo(fs, &o.RunRoot)
	addNotebookFlags(fs, &o.Notebook, "run")
	config.NonEmpty(fs, &o.From, "name", "from", "", "", "start at this cell (a tag, a cell id, a number or a name), and reuse the results of the cells before it from the notebook's last run")
	config.NonEmpty(fs, &o.FromRun, "name", "from-run", "", "", "run whose results --from reuses, instead of the last one")
	config.NonEmpty(fs, &o.Notebook.Of, "path", "of", "", "", "notebook that the given one was made from, and counts as a run of")
	config.NonEmpty(fs, &o.Notebook.SessionMod, "path", "session-mod", "", "", "go.mod of the kernel session that submits")
	config.NonEmpty(fs, &o.Notebook.SessionKept, "path", "session-kept", "", "", "folder with the values of %keep of the kernel session that submits")
	for _, name := range []string{"of", "session-mod", "session-kept"} {
		fs.Lookup(name).Hidden = true
	}
	fs.BoolVar(&o.DryRun, "dry-run", false, "print the batch script without writing anything")
	fs.BoolVar(&o.NoSubmit, "no-submit", false, "create the run directory and print the command that queues it without running it")
	fs.BoolVarP(&o.Follow, "follow", "F", false, "show rank 0's log until the job ends, and exit with the job's status")
	fs.BoolVar(&o.JSON, "json", false, jsonUsage)
	config.Mark(fs, config.FlagOnly, "json", "dry-run", "no-submit", "cell", "param", "params-file", "from", "from-run", "of", "session-mod", "session-kept")
	config.Mark(fs, config.Path, "template")
	config.Mark(fs, config.Resumable, "tasks", "follow", "no-submit", "json")
	config.Mark(fs, config.ClusterOnly, "nodes", "tasks-per-node", "gpus-per-node", "cpus-per-task", "mem", "time", "partition", "account", "qos", "constraint", "mpi",
		"signal-lead", "module", "setup", "directive", "template", "no-submit", "dry-run")
	config.Mark(fs, config.MachineOnly, "tasks")
}

// addNotebookFlags declares the flags that affect the exported programs; verb is what the command
// does with a cell.
func addNotebookFlags(fs *pflag.FlagSet, nb *stage.Notebook, verb string) {
	fs.StringArrayVar(&nb.Cells, "cell", nil, verb+" only this cell: a tag, a cell id, a number or a name; repeatable")
	fs.StringArrayVarP(&nb.ParamValues, "param", "p", nil, "set parameter NAME=VALUE, a variable of a cell tagged \"parameters\"; repeatable")
	config.NonEmpty(fs, &nb.ParamsFile, "path", "params-file", "f", "", "YAML file of parameters; -p overrides it")
}

// addJobFlags declares the flags that directly set fields of the job. The job's values are the
// defaults.
func addJobFlags(fs *pflag.FlagSet, s *submit.JobSpec) {
	own := pflag.NewFlagSet("resumable", pflag.ContinueOnError)
	own.SortFlags = false
	config.IntVar(own, &s.Nodes, "nodes", s.Nodes, "number of nodes")
	config.IntVar(own, &s.TasksPerNode, "tasks-per-node", s.TasksPerNode, "ranks on each node (with --gpus-per-node, the default is one for each GPU)")
	own.Var(&s.GPUs, "gpus-per-node", "GPUs on each node: a number, or a type and a number, such as a100:2; sbatch's --gres=gpu:a100:2 is the same")
	config.IntVar(own, &s.CPUsPerTask, "cpus-per-task", s.CPUsPerTask, "CPUs for each rank (default: the cluster's)")
	own.StringVar(&s.Mem, "mem", s.Mem, "memory of each node, such as 64G")
	own.StringVar(&s.Time, "time", s.Time, "time limit: minutes, M:S, H:M:S, D-H, D-H:M or D-H:M:S")
	own.StringVar(&s.Partition, "partition", s.Partition, "partition")
	own.StringVar(&s.Account, "account", s.Account, "account to charge")
	own.StringVar(&s.QOS, "qos", s.QOS, "quality of service")
	own.StringVar(&s.Constraint, "constraint", s.Constraint, "features that the nodes must have")
	own.StringVar(&s.MPI, "mpi", s.MPI, "srun's --mpi: auto, pmix, pmi2, none, ...")
	own.StringVar(&s.MPILibrary, "mpi-library", s.MPILibrary, "MPI library for the programs to open: a path or a soname")
	own.StringVar(&s.Devices, "devices", s.Devices, "XLA devices of each rank: a number, or all (default: 1; all GPUs for a --local run with one rank)")
	config.IntVar(own, &s.MaxRestarts, "max-restarts", s.MaxRestarts, "restarts allowed, at the time limit, after a preemption or a node failure, or when a rank of a training run dies; 0 for none")
	own.DurationVar(&s.SignalLead, "signal-lead", s.SignalLead, "how long before the time limit to tell the programs to save (default: 90s, less for a short --time)")
	own.VisitAll(func(f *pflag.Flag) { config.Mark(own, config.Resumable, f.Name) })
	fs.AddFlagSet(own)
	fs.StringVar(&s.Name, "name", s.Name, "name of the job and of its run directory (default: the notebook's)")
	fs.StringArrayVar(&s.Secrets, "secret", s.Secrets, "pass this variable of your shell to the programs without writing its value to a file; repeatable")
	fs.StringArrayVar(&s.Modules, "module", s.Modules, "environment module to load; repeatable")
	fs.StringArrayVar(&s.Setup, "setup", s.Setup, "shell command to run before the first cell; repeatable")
	fs.StringArrayVar(&s.Directives, "directive", s.Directives, "extra option for the scheduler, such as --directive=--exclusive; repeatable")
	fs.StringVar(&s.Template, "template", s.Template, "batch-script template to use instead of the built-in one")
	fs.StringVar(&s.Platform, "platform", s.Platform, "XLA platform: cpu or cuda (default: cuda if there is a GPU)")
	fs.SetNormalizeFunc(sbatchName)
}

// sbatchName has a flag go by sbatch's name too.
func sbatchName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "gres" {
		name = "gpus-per-node"
	}
	return pflag.NormalizedName(name)
}

// parseArgs takes the notebook, and the programs' arguments from position dash on (-1 if there are
// none).
func (o *submitOptions) parseArgs(args []string, dash int) error {
	own := args
	if dash >= 0 {
		own, o.Job.Args = args[:dash], args[dash:]
	}
	switch {
	case len(own) == 0:
		if err := stage.CheckParametersFile(o.Notebook.ParamsFile); err != nil {
			return err
		}
		return submit.Usagef("no notebook: give one, such as submit --local notebook.ipynb (see submit --help)")
	case len(own) > 1 && isCommand(own[0]):
		return submit.Usagef("unknown command %q (see submit --help)", own[0])
	case len(own) > 1:
		return submit.Usagef("%d notebooks: %q; submit takes one; put arguments for its programs after --", len(own), own)
	}
	o.Path = own[0]
	return nil
}

// isCommand reports whether word looks like a mistyped command: no notebook's name, and no file.
func isCommand(word string) bool {
	_, err := os.Stat(word)
	return err != nil && !strings.Contains(word, ".")
}

// checkFor refuses options that do not go with the scheduler.
func (o *submitOptions) checkFor(scheduler submit.Scheduler) error {
	_, batch := scheduler.(submit.Batch)
	if err := misplaced(o.flags, batch); err != nil {
		return err
	}
	if err := submit.CheckCount("tasks", o.Tasks, 1); err != nil && !batch {
		return submit.UsageError{Err: err}
	}
	return nil
}

// request returns the submission that o asks for. Only here the options pick the scheduler;
// everything else uses that.
func (o *submitOptions) request(a *app, cfg *config.Config) (req run.Request, err error) {
	req = o.Request
	req.Options = cfg.Given()
	if req.Scheduler, err = o.scheduler(a); err != nil {
		return req, err
	}
	if err := o.checkFor(req.Scheduler); err != nil {
		return req, err
	}
	_, batch := req.Scheduler.(submit.Batch)
	switch {
	case !batch:
		req.Job.Nodes, req.Job.TasksPerNode = 1, o.Tasks
	case o.Job.GPUs.Count > 0 && o.Kit.Folder == "" && cfg.Origin("tasks-per-node") == config.Default && cfg.Origin("devices") == config.Default:
		req.Job.TasksPerNode = o.Job.GPUs.Count
	}
	if n := req.Job.Nodes * req.Job.TasksPerNode; o.Kit.Folder != "" && n > 1 {
		return req, submit.Usagef("--gpu-check with %s: it checks the GPUs of one node, and starts a process for each by itself: leave out the options that ask for more ranks", plural.Of(n, "rank"))
	}
	req.Job.Env, err = submit.ParseEnv(o.Env)
	return req, err
}

// misplaced refuses flags of the command line that have no effect on the run's scheduler.
func misplaced(flags *pflag.FlagSet, batch bool) error {
	mark := config.ClusterOnly
	if batch {
		mark = config.MachineOnly
	}
	names := config.GivenWith(flags, mark)
	list := strings.Join(names, ", ")
	switch {
	case len(names) == 0:
		return nil
	case batch:
		return submit.Usagef("%s does nothing on a cluster, only with --local; give --nodes and --tasks-per-node", list)
	case slices.Contains(names, "--nodes") || slices.Contains(names, "--tasks-per-node"):
		return submit.Usagef("%s: only for a cluster, and this run is on one machine (--local); give --tasks for the number of ranks", list)
	}
	return submit.Usagef("%s: only for a cluster, and does nothing for a run on this machine (--local); leave it out", list)
}
