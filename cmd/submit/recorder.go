package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/executed"
)

// The main goroutine stays with the process' first thread. What "recorder attach" becomes is told by the kernel when the submit
// command that started it dies, and the kernel keeps that order for the first thread only.
func init() { runtime.LockOSThread() }

// newRecorderCommand has what the batch script and the rank script of a job call. It is no command for people.
func newRecorderCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{Use: "recorder", Short: "Write executed.ipynb in a job", Hidden: true}
	cmd.AddCommand(
		&cobra.Command{
			Use: "serve RUNDIR", Short: "Print a socket's path, and record what programs send to it until the job ends", Args: oneArg("RUNDIR"),
			RunE: func(_ *cobra.Command, args []string) error { return serveRecorder(a, rundir.At(args[0])) },
		},
		&cobra.Command{
			Use: "attach PROGRAM [ARGS]", Short: "Become a program whose output is recorded", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error {
				var spare []string
				if self, err := os.Executable(); err == nil {
					spare = []string{self, "recorder", "spare"}
				}
				return executed.Attach(a.getenv(rundir.EnvRecorder), args, a.environ, spare)
			},
		},
		&cobra.Command{
			Use: "spare", Short: "Read a program's output if its recorder dies", Args: cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error { return executed.Spare(a.getenv) },
		},
		&cobra.Command{
			Use: "end CODE", Short: "Record how the job ended", Args: oneArg("CODE"),
			RunE: func(_ *cobra.Command, args []string) error {
				code, err := strconv.Atoi(args[0])
				if err != nil {
					return usage("submit recorder end %s: want an exit code", args[0])
				}
				outcome := executed.Outcome{Code: code, Step: a.getenv(rundir.EnvCell)}
				if env := rundir.ReadEnv(a.getenv); env.InRun() {
					outcome = withFailure(outcome, env.Dir)
				}
				return executed.End(a.getenv(rundir.EnvRecorder), outcome)
			},
		},
	)
	return cmd
}

// withFailure adds what the ranks have said of a job that failed.
func withFailure(o executed.Outcome, dir rundir.Dir) executed.Outcome {
	if o.Code != 0 && o.Code != rundir.RequeueCode {
		if f, err := rundir.ReadFailure(dir); err == nil {
			o.Failure = &f
		}
	}
	return o
}

// recording is a run whose executed notebook is being written.
type recording struct {
	server *executed.Server
	folder string
}

// startRecording starts to record a run that begins now.
func startRecording(a *app, dir rundir.Dir, jobID string) (*recording, error) {
	recorder, err := executed.Open(dir, a.now)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	sweep(os.TempDir(), a.now())
	folder, err := os.MkdirTemp("", recorderPattern)
	if err != nil {
		return nil, err
	}
	recorder.Start(jobID, host)
	r := &recording{folder: folder}
	r.server, err = executed.Listen(r.socket(), recorder, func(err error) { fmt.Fprintln(a.err, "submit: warning:", err) })
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	return r, nil
}

// socketName is the recorder's socket in its folder.
const socketName = "socket"

// socket is where programs find the recorder: a local folder, as the run directory's file system may have no sockets.
func (r *recording) socket() string { return filepath.Join(r.folder, socketName) }

// end writes how the run ended.
func (r *recording) end(o executed.Outcome) error {
	return errors.Join(r.server.End(o), os.RemoveAll(r.folder))
}

// close writes the notebook as it is.
func (r *recording) close() error { return errors.Join(r.server.Close(), os.RemoveAll(r.folder)) }

// serveRecorder records until the job has ended, or the batch script is gone. It outlives the signals that tell a job to end:
// its programs may have much to say then.
func serveRecorder(a *app, dir rundir.Dir) error {
	parent := os.Getppid()
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	r, err := startRecording(a, dir, a.getenv("SLURM_JOB_ID"))
	if err != nil {
		return err
	}
	if _, err := io.WriteString(a.out, r.socket()+"\n"); err != nil {
		return errors.Join(err, r.close())
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-r.server.Done():
			return r.close()
		case <-ticker.C:
			if os.Getppid() != parent {
				return r.close()
			}
		}
	}
}

// outcomeOf is how a run ended.
func outcomeOf(status submit.Status, dir rundir.Dir) executed.Outcome {
	o := executed.Outcome{Code: status.ExitCode, Reason: status.Reason}
	switch {
	case status.State == submit.Completed:
		return executed.Outcome{}
	case status.Signal != 0:
		o.Code = 128 + status.Signal
	case o.Code == 0:
		o.Code = 1
	}
	if status.State != submit.Failed && status.State != submit.Stopped {
		o.State = string(status.State)
	}
	return withFailure(o, dir)
}
