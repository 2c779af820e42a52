package slurmtmpl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Data is what a template sees.
type Data struct {
	// Directives are the #SBATCH options, quoted and sorted.
	Directives []string
	// Env is the environment of every step: OwnEnv, gonbatch's part, and UserEnv. Each is sorted by
	// name.
	Env, OwnEnv, UserEnv []Var
	// Secrets are the names of variables that the job must have been given.
	Secrets []string
	// Modules and Setup run before the first step.
	Modules, Setup []string
	// Steps are the programs, in order.
	Steps []Launch
	// ExitStatus is the file for the job's id and exit code, Failure that of the ranks' failure.
	ExitStatus, Failure string
	// Ending is the file for what SLURM says as it ends the job, Script that of the batch script itself.
	Ending, Script string
	// Starts is the file with a line for each start of the run, Deaths that of the starts whose
	// ranks died, Finished the folder of marks of finished steps.
	Starts, Deaths, Finished string
	// Progress is the file with the update that the training has come to, Checkpoints the folder of
	// its checkpoints.
	Progress, Checkpoints string
	// Stopped, with the number of a start behind it, is the file that a rank makes when it ends with RequeueCode.
	Stopped     string
	RequeueCode int
	// MaxRestarts is how often the job may be started again, by SLURM or in place; 0 is never.
	MaxRestarts int
	// Recorder is the submit command in the run directory, and RunDir that directory; empty where the job is not recorded.
	Recorder, RunDir string
	// Resume is the command that goes on with the run.
	Resume string
}

// Var is an environment variable.
type Var struct{ Name, Value string }

// Launch is a step of the job, and how srun starts it.
type Launch struct {
	rundir.Step
	// Title is a line for the log.
	Title string
	// Env is the step's own environment, sorted by name.
	Env []Var
	// Srun are srun's options.
	Srun []string
	// Command is what srun starts: the program and its arguments, after the rank script of a job
	// that is recorded.
	Command []string
}

// NewData makes a template's data of spec, whose MPI kind must be decided.
func NewData(spec submit.JobSpec) (Data, error) {
	if strings.ContainsRune(spec.RunDir.Path(), '\\') {
		return Data{}, fmt.Errorf("--run-root=%q: has a backslash, which SLURM drops from the paths of logs; choose another folder", spec.RunDir.Path())
	}
	directives, err := directives(spec)
	if err != nil {
		return Data{}, err
	}
	data := Data{
		Directives:  directives,
		Env:         append(ownEnv(spec), sortedVars(spec.Env)...),
		OwnEnv:      ownEnv(spec),
		UserEnv:     sortedVars(spec.Env),
		Secrets:     spec.Secrets,
		Modules:     spec.Modules,
		Setup:       spec.Setup,
		ExitStatus:  spec.RunDir.ExitStatus(),
		Failure:     spec.RunDir.FailurePath(),
		Ending:      spec.RunDir.EndingPath(),
		Script:      spec.RunDir.Script(),
		Starts:      spec.RunDir.Starts(),
		Deaths:      spec.RunDir.Deaths(),
		Finished:    spec.RunDir.Finished(),
		Progress:    spec.RunDir.Progress(),
		Checkpoints: spec.RunDir.Checkpoints(),
		Stopped:     spec.RunDir.Stopped(""),
		RequeueCode: rundir.RequeueCode,
		MaxRestarts: spec.MaxRestarts,
		Resume:      submit.ResumeCommand(spec.RunDir),
	}
	if spec.Record {
		data.Recorder, data.RunDir = spec.RunDir.Submit(), spec.RunDir.Path()
	}
	for _, step := range spec.Steps {
		data.Steps = append(data.Steps, newLaunch(spec, step))
	}
	return data, nil
}

// ownEnv is what the programs read, as docs/architecture.md lists it.
func ownEnv(spec submit.JobSpec) []Var {
	vars := []Var{
		{rundir.EnvDir, spec.RunDir.Path()},
		{"GONBATCH_DEVICES", cmp.Or(spec.Devices, "1")},
		{"GONBATCH_PLUGIN_DIR", spec.Plugins()},
	}
	for _, v := range []Var{{"GONBATCH_DATA", spec.DataDir}, {"GONBATCH_MPI_LIBRARY", spec.MPILibrary}, {"GONBATCH_PLATFORM", spec.Platform}} {
		if v.Value != "" {
			vars = append(vars, v)
		}
	}
	slices.SortFunc(vars, byName)
	return vars
}

func sortedVars(env map[string]string) []Var {
	var vars []Var
	for _, name := range slices.Sorted(maps.Keys(env)) {
		vars = append(vars, Var{name, env[name]})
	}
	return vars
}

func byName(a, b Var) int { return cmp.Compare(a.Name, b.Name) }

func newLaunch(spec submit.JobSpec, step rundir.Step) Launch {
	s := Launch{
		Step:    step,
		Env:     sortedVars(step.Env),
		Srun:    srunOptions(spec, step),
		Command: spec.Command(step),
	}
	where := fmt.Sprintf("on %d ranks", spec.Tasks())
	if step.Once {
		where = "once, on the first node"
	}
	s.Title = fmt.Sprintf("%s %s: %s", StepTitle(step.Name), where, quoteAll(append([]string{spec.RunDir.StepProgram(step)}, spec.StepArgs(step)...)))
	return s
}

// StepTitle begins the line that the script writes to its log before a step.
func StepTitle(step string) string { return "gonbatch: step " + step }

// exportAll gives the steps the script's environment, whatever the job itself was given by "sbatch
// --export".
const exportAll = "--export=ALL"

func srunOptions(spec submit.JobSpec, step rundir.Step) []string {
	options := append(rankOptions(spec), exportAll)
	logs := rankLogs(spec.RunDir)
	if step.Once {
		options = []string{"--nodes=1", "--relative=0", "--ntasks=1", "--ntasks-per-node=1", "--mpi=none", "--input=none", exportAll}
		logs = rundir.At(escapePattern(spec.RunDir.Path())).RankLog(0)
	}
	if spec.CPUsPerTask > 0 {
		options = append(options, fmt.Sprintf("--cpus-per-task=%d", spec.CPUsPerTask))
	}
	if dir := cmp.Or(step.Dir, spec.WorkDir); dir != "" {
		options = append(options, "--chdir="+dir)
	}
	return append(options, "--open-mode=append", "--output="+logs)
}

// rankOptions start one process a rank.
func rankOptions(spec submit.JobSpec) []string {
	return []string{
		fmt.Sprintf("--nodes=%d", spec.Nodes),
		fmt.Sprintf("--ntasks=%d", spec.Tasks()),
		fmt.Sprintf("--ntasks-per-node=%d", spec.TasksPerNode),
		"--mpi=" + cmp.Or(spec.MPI, "none"),
		"--kill-on-bad-exit=1",
	}
}

// rankLogs is SLURM's pattern for the logs of all ranks: "%" is doubled wherever it is not a placeholder.
func rankLogs(dir rundir.Dir) string {
	return rundir.At(escapePattern(dir.Path())).RankLogPattern("%t")
}

func escapePattern(path string) string { return strings.ReplaceAll(path, "%", "%%") }
