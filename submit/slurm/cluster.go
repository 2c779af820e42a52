package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"

	"gonbatch/submit"
)

var clusterLine = regexp.MustCompile(`(?m)^ClusterName\s*=\s*(\S+)`)

// clusterName is the name of the cluster that this machine's SLURM commands ask. It is asked for
// once.
func (s *Scheduler) clusterName(ctx context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster != nil {
		return *s.cluster, nil
	}
	out, err := s.runner.Run(ctx, "scontrol", "show", "config")
	if err != nil {
		return "", unanswered(err)
	}
	name := ""
	if m := clusterLine.FindSubmatch(out); m != nil {
		name = string(m[1])
	}
	s.cluster = &name
	return name, nil
}

// elsewhere is the error for a job on a cluster that cannot be asked from here.
func elsewhere(job submit.Job, here string, err error) error {
	return submit.Unanswerable{Err: fmt.Errorf("job %s is on the cluster %s, and SLURM's commands on this machine ask the cluster %s: use a login node of %[2]s, or set SLURM_CONF to its slurm.conf (%[4]w)",
		job.ID, job.Cluster, here, err)}
}

// unanswered marks the error of a command that asking again will not change: SLURM is not here.
func unanswered(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return submit.Unanswerable{Err: err}
	}
	return err
}

// clusterArgs has a command ask a cluster; "" is this machine's.
func clusterArgs(cluster string, args ...string) []string {
	if cluster == "" {
		return args
	}
	return append([]string{"--clusters=" + cluster}, args...)
}

// unknownJob tells from a command's error that SLURM does not know the job.
func unknownJob(err error) bool {
	var command *submit.CommandError
	return errors.As(err, &command) && strings.Contains(command.Output, "Invalid job id")
}

// reachable gives the error of a cluster that could not be asked before: it is not tried for each
// of many jobs.
func (s *Scheduler) reachable(cluster string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unreachable[cluster]
}

func (s *Scheduler) cannotReach(cluster string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreachable[cluster] = err
}
