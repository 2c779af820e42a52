package submit

import (
	"slices"

	"gonbatch/internal/rundir"
)

// Step is one program of a job.
type Step struct {
	// Name is the step's name.
	Name string
	// Args are the step's own arguments, from the notebook.
	Args []string
	// Env is set for this step only.
	Env map[string]string
	// Dir is the step's working directory; "" is JobSpec.WorkDir.
	Dir string
	// Shell tells that the step runs once, on the first node, by a script: a shell command, or a program that is started so.
	Shell bool
	// Script tells that a script beside the program starts it, on each rank.
	Script bool
}

// Program is the file of the run directory that the step runs.
func (s Step) Program(dir rundir.Dir) string {
	if s.Shell || s.Script {
		return dir.Program(s.Name + ".sh")
	}
	return dir.Program(s.Name)
}

// Command is what starts a step's program, on each of its ranks: behind the run's rank script where the job is recorded.
func (s JobSpec) Command(step Step) []string {
	command := append([]string{step.Program(s.RunDir)}, s.StepArgs(step)...)
	if s.Record {
		command = append([]string{s.RunDir.RankScript()}, command...)
	}
	return command
}

// StepArgs are the arguments of a step's program: the step's own and the job's. A shell step has its own only.
func (s JobSpec) StepArgs(step Step) []string {
	if step.Shell {
		return step.Args
	}
	return slices.Concat(step.Args, s.Args)
}
