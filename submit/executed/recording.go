package executed

import (
	"errors"
	"os"
	"path/filepath"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/scratch"
)

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
	folder, err := scratch.Make(scratch.Recorder)
	if err != nil {
		return nil, err
	}
	recorder.Start(jobID, host)
	r, err := listen(filepath.Join(folder, scratch.Socket), recorder, func(err error) { shell.Warn("%v", err) })
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	r.folder = folder
	return r, nil
}

// Socket returns the path of the recorder's socket.
func (s *Recording) Socket() string { return s.listener.Addr().String() }

// EndJob writes with which exit code a job ended, in which cell.
func (s *Recording) EndJob(code int, cell string, dir rundir.Dir) error {
	return s.End(Outcome{Code: code, Cell: cell}.withFailure(dir))
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
