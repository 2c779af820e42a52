package main

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"gonbatch/data"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/export"
)

// check refuses options that do not go together.
func (o *submitOptions) check() error {
	switch {
	case o.Local && o.NoSubmit:
		return usage("--no-submit goes with a cluster, not with --local")
	case o.Local && o.DryRun:
		return usage("--dry-run shows a batch script; a --local run has none")
	case o.DryRun && o.NoSubmit:
		return usage("--dry-run writes nothing and --no-submit writes everything: give one of them")
	case o.Local && (o.onCommandLine("nodes") || o.onCommandLine("tasks-per-node")):
		return usage("--nodes and --tasks-per-node go with a cluster; with --local give --tasks")
	case !o.Local && o.onCommandLine("tasks"):
		return usage("--tasks goes with --local; on a cluster give --nodes and --tasks-per-node")
	case o.Local && o.Tasks < 1:
		return usage("--tasks=%d: must be at least 1", o.Tasks)
	}
	return o.checkFrom()
}

// spec is the job that o asks for, with the steps of m. Its run directory may be a preview.
func (o *submitOptions) spec(a *app, m *export.Module, dir rundir.Dir) (submit.JobSpec, error) {
	env, err := parseEnv(o.Env)
	if err != nil {
		return submit.JobSpec{}, err
	}
	workDir, err := filepath.Abs(cmp.Or(o.workDir, filepath.Dir(o.Notebook)))
	if err != nil {
		return submit.JobSpec{}, err
	}
	spec := submit.JobSpec{
		Name: o.name(), Nodes: o.Nodes, TasksPerNode: o.tasksPerNode(), CPUsPerTask: o.CPUsPerTask, GPUsPerNode: o.GPUs.count, GPUType: o.GPUs.kind,
		Mem: o.Mem, Time: o.Time, Partition: o.Partition, Account: o.Account, QOS: o.QOS, Constraint: o.Constraint,
		Env: env, Secrets: o.Secrets, Modules: o.Modules, Setup: o.Setup, Directives: o.Directives, MPI: o.MPI, MPILibrary: o.MPILibrary,
		Platform: o.platform(a.hasGPU), Devices: o.Devices, Steps: steps(m, workDir, a.getenv("HOME")), Args: o.Args, RunDir: dir, WorkDir: workDir,
		DataDir: data.Dir(a.getenv), Template: o.Template, Record: true, MaxRestarts: o.MaxRestarts, SignalLead: o.SignalLead,
	}
	if o.Local {
		spec.Nodes, spec.TasksPerNode = 1, o.Tasks
	}
	if err := spec.Validate(); err != nil {
		return spec, usageError{err}
	}
	return spec, a.checkSecrets(spec)
}

// name is the job's name: the notebook's unless one is given. A notebook's own name may hold what a job's cannot.
func (o *submitOptions) name() string {
	base := filepath.Base(o.Notebook)
	return cmp.Or(o.Name, strings.Map(printable, strings.TrimSuffix(base, filepath.Ext(base))))
}

// printable puts a space in the place of a control character.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

// tasksPerNode is one rank for each GPU unless a number is given.
func (o *submitOptions) tasksPerNode() int {
	if o.GPUs.count > 0 && !o.isSet("tasks-per-node") {
		return o.GPUs.count
	}
	return o.TasksPerNode
}

func parseEnv(list []string) (map[string]string, error) {
	env := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return nil, usage("--env=%q: give NAME=VALUE", text)
		}
		env[name] = value
	}
	return env, nil
}

// steps are those of the module, with absolute directories.
func steps(m *export.Module, workDir, home string) []rundir.Step {
	list := slices.Clone(m.Steps)
	for i := range list {
		list[i].Dir = stepDir(list[i].Dir, workDir, home)
	}
	return list
}

// stepDir is the directory that a notebook changed to: relative to the notebook's, or to the home folder behind "~".
func stepDir(dir, workDir, home string) string {
	rest, tilde := strings.CutPrefix(dir, "~")
	switch {
	case dir == "" || filepath.IsAbs(dir):
		return dir
	case tilde && home != "" && (rest == "" || rest[0] == '/'):
		return filepath.Join(home, rest)
	}
	return filepath.Join(workDir, dir)
}
