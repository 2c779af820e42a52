package slurm

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// queue holds the jobs of a user by the name of the folder that has their script, or the error of
// the query for them.
type queue struct {
	jobs map[string][]queued
	err  error
}

// queued is a job in squeue's output.
type queued struct {
	id, command string
	ended       bool
}

// Find finds the job of a run by its script: a job queued by hand, or by a command that was killed
// before it could record it. Of several jobs it returns the last that has not ended, else the last.
// If SLURM knows only jobs in except, the ID is "".
func (v *survey) Find(ctx context.Context, dir rundir.Dir, except []string) (submit.Job, error) {
	found, active := submit.Job{Dir: dir}, false
	err := v.each(ctx, dir, func(job submit.Job, ended bool) {
		if !slices.Contains(except, string(job.ID)) && (!ended || !active) {
			found, active = job, !ended
		}
	})
	return found, err
}

// Live returns all jobs with the run's script that have not ended.
func (v *survey) Live(ctx context.Context, dir rundir.Dir) (live []submit.Job, err error) {
	err = v.each(ctx, dir, func(job submit.Job, ended bool) {
		if !ended {
			live = append(live, job)
		}
	})
	return live, err
}

// each calls do for each job with the run's script, in the order of their ids.
func (v *survey) each(ctx context.Context, dir rundir.Dir, do func(job submit.Job, ended bool)) error {
	q := v.queueOf(ctx, owner(dir))
	if q.err != nil {
		return fmt.Errorf("look for the jobs of run %s: %w", dir.Name(), q.err)
	}
	name := dir.Name()
	if real, err := filepath.EvalSymlinks(dir.Path()); err == nil {
		name = filepath.Base(real)
	}
	for _, j := range q.jobs[name] {
		if !isScript(j.command, dir) {
			continue
		}
		cluster, err := v.scheduler.clusterName(ctx)
		if err != nil {
			return err
		}
		do(submit.Job{ID: submit.JobID(j.id), Cluster: cluster, Dir: dir}, j.ended)
	}
	return nil
}

// owner returns the user id of the run's owner.
func owner(dir rundir.Dir) uint32 {
	if info, err := os.Stat(dir.Path()); err == nil {
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			return stat.Uid
		}
	}
	return uint32(os.Geteuid())
}

// queueOf queries a user's jobs, once. The jobs of the whole cluster may be very many.
func (v *survey) queueOf(ctx context.Context, uid uint32) queue {
	v.mu.Lock()
	defer v.mu.Unlock()
	q, ok := v.queues[uid]
	if ok {
		return q
	}
	q.jobs = map[string][]queued{}
	out, err := v.scheduler.runner.Run(ctx, "squeue", "--noheader", "--all", "--states=all", fmt.Sprintf("--user=%d", uid), "--sort=i", "--format=%i|%T|%o")
	if err != nil {
		q.err = unanswered(err)
	}
	for line := range strings.Lines(string(out)) {
		if words := strings.SplitN(strings.TrimRight(line, "\n"), "|", 3); len(words) == 3 {
			name := filepath.Base(filepath.Dir(words[2]))
			q.jobs[name] = append(q.jobs[name], queued{id: words[0], command: words[2], ended: parseState(words[1]).Ended()})
		}
	}
	v.queues[uid] = q
	return q
}
