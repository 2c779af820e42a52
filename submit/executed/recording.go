package executed

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/scratch"
)

// Recording is a run that is being recorded.
type Recording struct {
	*Server
	folder string
}

// Record starts to record a run that begins now. The recorder's socket is in a local folder,
// because the run directory's file system may not support sockets.
func Record(shell submit.Shell, dir rundir.Dir, jobID string) (*Recording, error) {
	recorder, err := openRecorder(dir, shell.Now)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	scratch.Sweep(os.TempDir(), shell.Now())
	r := &Recording{}
	if r.folder, err = scratch.Make(scratch.Recorder); err != nil {
		return nil, err
	}
	recorder.Start(jobID, host)
	r.Server, err = listen(r.Socket(), recorder, func(err error) { shell.Warn("%v", err) })
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(r.folder))
	}
	return r, nil
}

// Socket returns the path of the recorder's socket.
func (r *Recording) Socket() string { return filepath.Join(r.folder, scratch.Socket) }

// End writes how the run ended.
func (r *Recording) End(o Outcome) error { return errors.Join(r.Server.End(o), os.RemoveAll(r.folder)) }

// Close writes the notebook in its current state.
func (r *Recording) Close() error { return errors.Join(r.Server.Close(), os.RemoveAll(r.folder)) }

// serve prints the recorder's socket, and records until the job has ended or the batch script that
// started this process is gone. It ignores the signals that tell a job to end, because the programs
// may still print a lot then.
func serve(shell submit.Shell, dir rundir.Dir, jobID string) error {
	parent := os.Getppid()
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	r, err := Record(shell, dir, jobID)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(shell.Out, r.Socket()+"\n"); err != nil {
		return errors.Join(err, r.Close())
	}
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-r.Done():
			return r.Close()
		case <-ticker.C:
			if os.Getppid() != parent {
				return r.Close()
			}
		}
	}
}

// endJob tells the calling job's recorder the exit code of the job.
func endJob(getenv func(string) string, code int) error {
	outcome := Outcome{Code: code, Cell: getenv(rundir.EnvCell)}
	if env := rundir.ReadEnv(getenv); env.InRun() {
		outcome = outcome.withFailure(env.Dir)
	}
	return sendEnd(getenv(rundir.EnvRecorder), outcome)
}

// OutcomeOf returns the outcome of a job from its status.
func OutcomeOf(status submit.Status, dir rundir.Dir) Outcome {
	o := Outcome{Code: status.ExitCode, Reason: status.Reason}
	switch {
	case status.State == submit.Completed:
		return Outcome{}
	case status.Signal != 0:
		o.Code = 128 + status.Signal
	case o.Code == 0:
		o.Code = 1
	}
	if status.State != submit.Failed && status.State != submit.Stopped {
		o.State = string(status.State)
	}
	return o.withFailure(dir)
}

// withFailure adds the failure that the ranks recorded, if the job failed.
func (o Outcome) withFailure(dir rundir.Dir) Outcome {
	if o.Code != 0 && o.Code != rundir.RequeueCode {
		if f, err := rundir.ReadFailure(dir); err == nil {
			o.Failure = &f
		}
	}
	return o
}
