package slurm

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
	"gonbatch/submit/job"
	"gonbatch/submit/notify"
	"gonbatch/submit/scratch"
)

// stopSignal tells a job, and its ranks, to save and stop: sbatch's --signal sends it.
const stopSignal = syscall.SIGUSR1

// RunJob runs a job on its first node, as the batch script asks for it, and returns the exit code.
// args are the run directory and options.
func RunJob(shell submit.Shell, args []string) int {
	stops := stopsOf(syscall.SIGTERM, stopSignal)
	code, err := runJob(shell, args, stops)
	if err != nil {
		fmt.Fprintln(shell.Err, "gonbatch:", err)
		return 1
	}
	return code
}

func runJob(shell submit.Shell, args []string, stops <-chan job.Stop) (int, error) {
	switch {
	case len(args) == 4 && args[0] == "--leave":
		return 0, leave(args[1], shell.Environ, args[2:])
	case len(args) > 2 && args[0] == "--enter":
		return 0, enter(args[1], shell.Environ, args[2:])
	}
	withSetup := len(args) == 2 && args[0] == "--setup"
	if !withSetup && len(args) != 1 {
		return 0, fmt.Errorf("submit job %q: want the run directory, and --setup before it if its setup is standard input", args)
	}
	spec, err := submit.ReadDecided(rundir.At(args[len(args)-1]))
	if err != nil {
		return 0, err
	}
	in := &inside{shell: shell, spec: spec}
	if in.Job() == "" {
		return 0, fmt.Errorf("this is no job of SLURM: queue the script with %s", submitCommand(spec))
	}
	if withSetup {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return 0, fmt.Errorf("setup: %w", err)
		}
		folder, err := scratch.Make(scratch.Setup)
		if err != nil {
			return 0, fmt.Errorf("setup: %w", err)
		}
		defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
		in.setup = setup{text: string(text), file: filepath.Join(folder, "state.json")}
	}
	var recording *executed.Recording
	if spec.Record {
		if recording, err = executed.Record(shell, spec.RunDir, in.Job()); err != nil {
			shell.Warn("%v", err)
		} else {
			in.recorder = recording.Socket()
		}
	}
	j := &job.Job{Spec: spec, Launcher: in, Scheduler: in, Setup: in.Setup, Refusal: refusal(shell, spec), Log: shell.Out, Now: shell.Now, Signals: stops}
	ended := notify.Begin(shell, spec, in.Job())
	code := j.Run()
	ended(code)
	if recording != nil {
		if err := recording.EndJob(code, j.Cell(), spec.RunDir); err != nil {
			shell.Warn("%v", err)
		}
	}
	return code, nil
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

// refusal is why no cell can run: a secret is missing.
func refusal(shell submit.Shell, spec submit.JobSpec) string {
	for _, name := range spec.Secrets {
		if !shell.IsSet(name) {
			return fmt.Sprintf("the job has no variable %s, which --secret %[1]s promises: queue it from a shell that exports %[1]s", name)
		}
	}
	return ""
}
