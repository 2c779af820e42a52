package main

import (
	"cmp"
	"maps"
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
	GPUs          submit.GPUs
	Env           []string
	RunRoot       string
	asMeasured    bool

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
	config.IntVarP(fs, &o.Tasks, "tasks", "n", 1, "ranks in total: on a cluster, divided over the --nodes")
	fs.VarP(&o.GPUs, "gpus", "G", "GPUs in total, divided over the --nodes; a number, or a type and a number, such as a100:4")
	addJobFlags(fs, &o.Job)
	fs.StringArrayVar(&o.Env, "env", nil, "set environment variable NAME=VALUE for the programs; repeatable")
	addRunRootTo(fs, &o.RunRoot)
	addNotebookFlags(fs, &o.Notebook, "run")
	fs.StringArrayVar(&o.Sweep.Axes, "sweep", nil, "a run for each of these values of a parameter or a flag, NAME=VALUE,VALUE or NAME=FIRST..LAST; repeated, for all combinations")
	config.IntVar(fs, &o.Sweep.Random, "random", 0, "with --sweep: this many runs with random values, also from ranges of real numbers: lr=1e-5..1e-2, or log(1e-5..1e-2) for uniform logarithms")
	config.NonEmpty(fs, &o.Sweep.Extend, "sweep", "extend", "", "", "add those runs of --sweep to this earlier sweep that it doesn't have")
	config.NonEmpty(fs, &o.Sweep.Scaling, "numbers", "scaling", "", "", "a run with each of these numbers of nodes, or of ranks with --local, such as 1,2,4; with -F or --local, then a table of their speeds")
	config.IntVar(fs, &o.Sweep.AtOnce, "at-once", 0, "with --sweep: how many of the jobs may run at the same time (default: all)")
	fs.StringArrayVar(&o.After.Completed, "after", nil, "start only when this run, or all of this sweep, has completed; if one fails, the job is removed; repeatable")
	fs.StringArrayVar(&o.After.Ended, "after-any", nil, "start only when this run, or all of this sweep, has ended, in whatever way; repeatable")
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
	config.Mark(fs, config.FlagOnly, "gpus", "sweep", "random", "extend", "scaling", "at-once", "after", "after-any", "json", "dry-run", "no-submit", "cell", "param", "params-file", "from", "from-run", "of", "session-mod", "session-kept")
	config.Mark(fs, config.Path, "template")
	config.Mark(fs, config.Resumable, "tasks", "gpus", "after", "after-any", "follow", "no-submit", "json")
	config.Mark(fs, config.ClusterOnly, passedNames()...)
	config.Mark(fs, config.ClusterOnly, "at-once", "after", "after-any", "nodes", "tasks-per-node", "gpus", "gpus-per-node", "cpus-per-task", "mem", "time", "partition", "account", "qos", "constraint", "mpi",
		"signal-lead", "module", "setup", "directive", "template", "no-submit", "dry-run")
}

// addNotebookFlags declares the flags that affect the exported programs; verb is what the command
// does with a cell.
func addNotebookFlags(fs *pflag.FlagSet, nb *stage.Notebook, verb string) {
	fs.StringArrayVar(&nb.Cells, "cell", nil, verb+" only this cell: a tag, a cell id, a number or a name; repeatable")
	fs.VarP(newParams(fs, nb), "param", "p", "set parameter NAME=VALUE, a variable of a cell tagged \"parameters\"; repeatable")
	config.NonEmpty(fs, &nb.ParamsFile, "path", "params-file", "f", "", "YAML file of parameters; -p overrides it")
}

// addJobFlags declares the flags that directly set fields of the job. The job's values are the
// defaults.
func addJobFlags(fs *pflag.FlagSet, s *submit.JobSpec) {
	own := pflag.NewFlagSet("resumable", pflag.ContinueOnError)
	own.SortFlags = false
	config.IntVarP(own, &s.Nodes, "nodes", "N", s.Nodes, "number of nodes")
	config.IntVar(own, &s.TasksPerNode, "tasks-per-node", s.TasksPerNode, "ranks on each node (with --gpus-per-node, the default is one for each GPU)")
	own.Var(&s.GPUs, "gpus-per-node", "GPUs on each node: a number, or a type and a number, such as a100:2; sbatch's --gres=gpu:a100:2 is the same")
	config.IntVarP(own, &s.CPUsPerTask, "cpus-per-task", "c", s.CPUsPerTask, "CPUs for each rank (default: the cluster's)")
	config.ParsedVar(own, &s.Mem, submit.ParseMemory, "memory", "mem", "", "memory of each node, such as 64G; 0 for all")
	config.ParsedVar(own, &s.Time, submit.ParseTime, "time", "time", "t", "time limit: "+submit.TimeForms)
	own.StringVar(&s.Partition, "partition", s.Partition, "partition; -p PARTITION is short for it, and -p NAME=VALUE sets a parameter")
	own.StringVarP(&s.Account, "account", "A", s.Account, "account to charge")
	own.StringVarP(&s.QOS, "qos", "q", s.QOS, "quality of service")
	own.StringVarP(&s.Constraint, "constraint", "C", s.Constraint, "features that the nodes must have")
	addPassedFlags(own, s)
	own.StringVar(&s.MPI, "mpi", s.MPI, "srun's --mpi: auto, pmix, pmi2, none, ...")
	own.StringVar(&s.MPILibrary, "mpi-library", s.MPILibrary, "MPI library for the programs to open: a path or a soname")
	own.StringVar(&s.Devices, "devices", s.Devices, "XLA devices of each rank: a number, or all (default: 1; all GPUs for a --local run with one rank)")
	config.IntVar(own, &s.MaxRestarts, "max-restarts", s.MaxRestarts, "restarts allowed, at the time limit, after a preemption or a node failure, or when a rank of a training run dies; 0 for none")
	own.DurationVar(&s.SignalLead, "signal-lead", s.SignalLead, "how long before the time limit to tell the programs to save (default: 90s, less for a short --time)")
	own.StringArrayVar(&s.Notify, "notify", s.Notify, "when the job starts and ends, post JSON to this URL, or run this shell command with JSON as its standard input; repeatable")
	own.VisitAll(func(f *pflag.Flag) { config.Mark(own, config.Resumable, f.Name) })
	fs.AddFlagSet(own)
	fs.StringVarP(&s.Name, "name", "J", s.Name, "name of the job and of its run directory (default: the notebook's)")
	fs.StringArrayVar(&s.Secrets, "secret", s.Secrets, "pass this variable of your shell to the programs without writing its value to a file; repeatable")
	fs.StringArrayVar(&s.Modules, "module", s.Modules, "environment module to load; repeatable")
	fs.StringArrayVar(&s.Setup, "setup", s.Setup, "shell command to run before the first cell; repeatable")
	fs.StringArrayVar(&s.Directives, "directive", s.Directives, "extra option for the scheduler, such as --directive=--nice=100; repeatable")
	fs.StringVar(&s.Template, "template", s.Template, "batch-script template to use instead of the built-in one")
	fs.StringVar(&s.Platform, "platform", s.Platform, "XLA platform: cpu or cuda (default: cuda if there is a GPU)")
	fs.SetNormalizeFunc(sbatchName)
}

// sbatchName has a flag go by sbatch's name too.
func sbatchName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	return pflag.NormalizedName(cmp.Or(map[string]string{"gres": "gpus-per-node", "ntasks": "tasks", "ntasks-per-node": "tasks-per-node", "job-name": "name"}[name], name))
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
	if p := o.Notebook.Partition; p != "" && !batch {
		return submit.Usagef("-p %s: without a = this is a partition, and the run is on this machine (--local); -p %[1]s=VALUE sets a parameter", p)
	}
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
	// The ranks in total may also come from a file or a variable.
	hasTasks := o.flags.Changed("tasks") || cfg.Origin("tasks") != config.Default && !o.flags.Changed("tasks-per-node")
	preferGiven(&req.Job, o.flags)
	if !batch {
		req.Job.Nodes, req.Job.TasksPerNode, req.Job.Passed = 1, o.Tasks, nil // A file may have options for clusters.
	} else if err = o.divide(&req.Job, o.flags, hasTasks); err != nil {
		return req, err
	}
	if req.Job.GPUs.Count == 0 && !o.flags.Changed("mem-per-gpu") {
		req.Job.Passed = maps.Clone(req.Job.Passed)
		delete(req.Job.Passed, "mem-per-gpu") // A file may have it for jobs with GPUs.
	}
	if gpus := req.Job.GPUs.Count; batch && gpus > 0 && o.Kit.Folder == "" && !hasTasks && cfg.Origin("tasks-per-node") == config.Default && cfg.Origin("devices") == config.Default {
		req.Job.TasksPerNode = gpus
	}
	if n := req.Job.Nodes * req.Job.TasksPerNode; o.Kit.Folder != "" && n > 1 {
		return req, submit.Usagef("--gpu-check with %s: it checks the GPUs of one node, and starts a process for each by itself: leave out the options that ask for more ranks", plural.Of(n, "rank"))
	}
	req.Job.Env, err = submit.ParseEnv(o.Env)
	return req, err
}

// misplaced refuses flags of the command line that have no effect on the run's scheduler.
func misplaced(flags *pflag.FlagSet, batch bool) error {
	names := config.GivenWith(flags, config.ClusterOnly)
	list := strings.Join(names, ", ")
	switch {
	case batch || len(names) == 0:
		return nil
	case slices.Contains(names, "--nodes") || slices.Contains(names, "--tasks-per-node"):
		return submit.Usagef("%s: only for a cluster, and this run is on one machine (--local); give --tasks for the number of ranks", list)
	}
	return submit.Usagef("%s: only for a cluster, and does nothing for a run on this machine (--local); leave it out", list)
}
