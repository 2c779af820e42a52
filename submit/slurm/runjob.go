package slurm

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/job"
)

// stopSignal tells a job, and its ranks, to save and stop: sbatch's --signal sends it.
const stopSignal = syscall.SIGUSR1

// RunJob runs a job on its first node, as the batch script asks for it, and returns the exit code.
// args are the run directory and options.
func RunJob(shell submit.Shell, args []string) int {
	stops := stopsOf(syscall.SIGTERM, stopSignal)
	flags := pflag.NewFlagSet("submit job", pflag.ContinueOnError)
	path := flags.String("path", "", "where SLURM's commands are; $PATH if it is empty")
	setup := flags.Int("setup-ended", -1, "the exit code of a setup that has ended the batch script")
	err := flags.Parse(args)
	if err == nil && flags.NArg() != 1 {
		err = fmt.Errorf("submit job %q: want the run directory", args)
	}
	var spec submit.JobSpec
	if err == nil {
		spec, err = submit.ReadDecided(rundir.At(flags.Arg(0)))
	}
	if err != nil {
		fmt.Fprintln(shell.Err, "gonbatch:", err)
		return 1
	}
	in := inside{shell: shell, spec: spec, path: cmp.Or(*path, shell.Getenv("PATH"))}
	if in.Job() == "" {
		fmt.Fprintln(shell.Err, "gonbatch: this is no job of SLURM: queue the script with", submitCommand(spec))
		return 1
	}
	var recording *executed.Recording
	if spec.Record {
		if recording, err = executed.Record(shell, spec.RunDir, in.Job()); err != nil {
			shell.Warn("%v", err)
		} else {
			in.shell.Environ = append(in.shell.Environ, rundir.EnvRecorder+"="+recording.Socket())
		}
	}
	j := &job.Job{Spec: spec, Launcher: in, Scheduler: in, Refusal: refusal(shell, spec, *setup), Log: shell.Out, Now: shell.Now, Signals: stops}
	code := j.Run()
	if recording != nil {
		if err := recording.EndJob(code, j.Cell(), spec.RunDir); err != nil {
			shell.Warn("%v", err)
		}
	}
	return code
}

// stopsOf returns the process's signals as events of a job.
func stopsOf(signals ...os.Signal) <-chan job.Stop {
	raw, stops := make(chan os.Signal, 8), make(chan job.Stop, 8)
	signal.Notify(raw, signals...)
	go func() {
		for s := range raw {
			stops <- job.Stop{Near: s == stopSignal}
		}
	}()
	return stops
}

// refusal is why no cell can run: the setup has ended the batch script with a code, or a secret is
// missing.
func refusal(shell submit.Shell, spec submit.JobSpec, setup int) job.Refusal {
	for _, name := range spec.Secrets {
		if !shell.IsSet(name) {
			return job.Refusal{Code: 1, Text: fmt.Sprintf("the job has no variable %s, which --secret %[1]s promises: queue it from a shell that exports %[1]s", name)}
		}
	}
	switch setup {
	case -1:
		return job.Refusal{}
	case 0:
		return job.Refusal{Code: 1, Text: "a command of --setup has ended the shell: use no exit and no exec in it"}
	case rundir.RequeueCode: // Only ranks can have saved.
		setup = 1
	}
	return job.Refusal{Code: setup}
}
