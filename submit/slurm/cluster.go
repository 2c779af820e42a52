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

// clusterName returns the name of the cluster that this machine's SLURM commands ask. It queries
// SLURM only once.
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

// elsewhere returns the error for a job on a cluster that cannot be asked from here.
func elsewhere(job submit.Job, here string, err error) error {
	return submit.Unanswerable{Err: fmt.Errorf("job %s is on the cluster %s, and SLURM's commands on this machine ask the cluster %s: use a login node of %[2]s, or set SLURM_CONF to its slurm.conf (%[4]w)",
		job.ID, job.Cluster, here, err)}
}

// unanswered makes the error of a missing SLURM command Unanswerable, because asking again is
// useless.
func unanswered(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return submit.Unanswerable{Err: err}
	}
	return err
}

// clusterArgs adds the option by which a command asks a cluster; "" is this machine's.
func clusterArgs(cluster string, args ...string) []string {
	if cluster == "" {
		return args
	}
	return append([]string{"--clusters=" + cluster}, args...)
}

// unknownJob reports whether a command's error says that SLURM does not know the job.
func unknownJob(err error) bool { return said(err, "Invalid job id") }

// said reports whether a command failed and printed the text.
func said(err error, text string) bool {
	var command *submit.CommandError
	return errors.As(err, &command) && strings.Contains(command.Output, text)
}

// reachable returns the earlier error of a cluster that could not be asked, so that it is not tried
// again for each of many jobs.
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
