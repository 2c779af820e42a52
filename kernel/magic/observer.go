package magic

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"gonbatch/internal/rundir"
)

// mostRanks is the maximum number of ranks on a card.
const mostRanks = 64

// observer looks at a job repeatedly. It must be used by one goroutine at a time.
type observer struct {
	m   *Magics
	job Job

	metrics  rundir.MetricsReader
	logs     map[int]*logReader
	restarts int
	stale    map[int]place // where ranks were before the job was started again
}

func (m *Magics) observe(job Job) *observer {
	return &observer{m: m, job: job, logs: map[int]*logReader{}, stale: map[int]place{}}
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
	o.metrics.Dir = dir
	if all, err := o.metrics.Read(); err == nil { // If the file system fails for a moment, the next look tries again.
		s.addMetrics(all)
	}
	main := o.log(dir, 0)
	main.read()
	s.Log, s.Progress = main.tail(), main.progress
	if o.restarts != s.Run.Restarts {
		o.restarts = s.Run.Restarts
		for number, log := range o.logs {
			o.stale[number] = log.place
		}
	}
	o.lookAtRanks(dir, s)
}

func (o *observer) log(dir rundir.Dir, number int) *logReader {
	l, ok := o.logs[number]
	if !ok {
		l = &logReader{file: dir.RankLog(number)}
		o.logs[number] = l
	}
	return l
}

// lookAtRanks finds out where each rank runs. It reads a rank's log until it finds the host.
func (o *observer) lookAtRanks(dir rundir.Dir, s *state) {
	size, err := strconv.Atoi(o.log(dir, 0).place.Size)
	if err != nil {
		return
	}
	var failure *rundir.Failure
	if f, err := rundir.ReadFailure(dir); err == nil {
		failure = &f
	}
	for number := range min(size, mostRanks) {
		log := o.log(dir, number)
		if old, stale := o.stale[number]; number > 0 && (log.place == place{} || stale && log.place == old && !s.ended()) {
			log.read()
		}
		s.Ranks = append(s.Ranks, rank{Number: number, place: log.place, State: s.rankState(number, log.place != place{}, failure)})
	}
}
