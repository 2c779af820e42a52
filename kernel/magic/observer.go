package magic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"gonbatch/internal/rundir"
)

// observer looks at a job repeatedly. It must be used by one goroutine at a time.
type observer struct {
	m   *Magics
	job Job

	metrics rundir.MetricsReader
	log     logReader // of rank 0
}

func (m *Magics) observe(job Job) *observer {
	return &observer{m: m, job: job}
}

// look asks the submit command for the job's state, and reads what is new in its run directory.
func (o *observer) look(ctx context.Context) (state, error) {
	s := state{Job: o.job}
	text, err := o.m.output(ctx, "status", "--json", o.job.target())
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(text), &s.Run); err != nil {
		return s, fmt.Errorf("read what submit status reports: %w", err)
	}
	s.Job.Dir = cmp.Or(s.Run.Directory, s.Job.Dir)
	o.job = s.Job
	if s.Job.Dir != "" {
		o.lookInside(&s)
	}
	return s, nil
}

// output runs the submit command and returns its output. If the command fails and prints an error,
// that is the error.
func (m *Magics) output(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, m.opts.Program, args...)
	cmd.Dir, cmd.Env = m.opts.Dir(), m.opts.Environ
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
		err = errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

func (o *observer) lookInside(s *state) {
	dir := rundir.At(s.Job.Dir)
	o.metrics.File = dir.Metrics()
	if all, err := o.metrics.Read(); err == nil { // If the file system fails for a moment, the next look tries again.
		s.addMetrics(all)
	}
	o.log.file = dir.RankLog(0)
	o.log.read()
	s.Log, s.Progress = o.log.tail(), o.log.progress
}
