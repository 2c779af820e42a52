package executed

import (
	"strconv"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Name is the name of the command `submit recorder`, which the batch script and the rank script of
// a job call.
const Name = "recorder"

// Command runs `submit recorder ARGS`:
//
//	serve RUNDIR JOB       prints a socket's path, and records what programs send to it until the job ends
//	attach PROGRAM ARGS    becomes a program whose output is recorded
//	spare                  reads a program's output if its recorder dies
//	end CODE               records how the job ended
func Command(shell submit.Shell, args []string) error {
	verb := ""
	if len(args) > 0 {
		verb, args = args[0], args[1:]
	}
	switch {
	case verb == "serve" && len(args) == 2:
		return serve(shell, rundir.At(args[0]), args[1])
	case verb == "attach":
		return attach(shell.Getenv(rundir.EnvRecorder), args, shell.Environ, spareCommand(shell))
	case verb == "spare" && len(args) == 0:
		return runSpare(shell.Getenv)
	case verb == "end" && len(args) == 1:
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return submit.Usagef("submit %s end %s: want an exit code", Name, args[0])
		}
		return endJob(shell.Getenv, code)
	}
	return submit.Usagef("submit %s %s %q: want serve RUNDIR JOB, attach PROGRAM [ARGS], spare, or end CODE", Name, verb, args)
}
