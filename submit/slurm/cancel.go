package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gonbatch/submit"
)

// Cancel ends the job, if its id still belongs to the run: by now, or on this cluster, it may be
// another job's. A job that has ended, or that its cluster has forgotten, is not an error; one on a
// cluster that cannot be asked is.
func (s *Scheduler) Cancel(ctx context.Context, job submit.Job) error {
	cluster, err := s.clusterOf(ctx, job)
	if errors.Is(err, errForgotten) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cancel job %s: %w", job.ID, err)
	}
	_, err = s.runner.Run(ctx, "scancel", clusterArgs(cluster, string(job.ID))...)
	if err == nil || unknownJob(err) || hasEnded(err) {
		return nil
	}
	return fmt.Errorf("cancel job %s: %w", job.ID, err)
}

// clusterOf returns the cluster that has the job, "" for this machine's, if the job is still the
// run's.
func (s *Scheduler) clusterOf(ctx context.Context, job submit.Job) (cluster string, err error) {
	if _, err = s.show(ctx, "", job); errors.Is(err, errForgotten) {
		_, err = s.findElsewhere(ctx, job)
		cluster = job.Cluster
	}
	return cluster, err
}

// Control runs one of scontrol's commands, whose names are the verbs.
func (s *Scheduler) Control(ctx context.Context, job submit.Job, verb submit.Verb) error {
	return s.scontrol(ctx, job, string(verb), string(job.ID))
}

// updatable maps the options that a job in the queue can change to the fields of "scontrol update".
var updatable = map[string]string{
	"account": "Account", "begin": "StartTime", "constraint": "Features", "deadline": "Deadline", "dependency": "Dependency", "exclude": "ExcNodeList", "mem": "MinMemoryNode",
	"nodelist": "ReqNodeList", "partition": "Partition", "qos": "QOS", "reservation": "ReservationName", "time": "TimeLimit",
}

// Updatable returns the names of the options that a job in the queue can change.
func (s *Scheduler) Updatable() []string { return slices.Collect(maps.Keys(updatable)) }

// Update changes an option by "scontrol update".
func (s *Scheduler) Update(ctx context.Context, job submit.Job, spec submit.JobSpec, name string) error {
	values := map[string]string{
		"account": spec.Account, "constraint": spec.Constraint, "mem": strconv.Itoa(submit.Megabytes(spec.Mem)), "partition": spec.Partition, "qos": spec.QOS, "time": spec.Time,
	}
	value, ok := values[name]
	if !ok {
		value = spec.Passed[name]
	}
	return s.scontrol(ctx, job, "update", "JobId="+string(job.ID), updatable[name]+"="+value)
}

// scontrol runs a command about a job that the job's cluster has.
func (s *Scheduler) scontrol(ctx context.Context, job submit.Job, args ...string) error {
	cluster, err := s.clusterOf(ctx, job)
	if err == nil {
		_, err = s.runner.Run(ctx, "scontrol", clusterArgs(cluster, args...)...)
	}
	if said(err, "Requested operation is presently disabled") {
		return fmt.Errorf("%s job %s: SLURM doesn't requeue it, because it was submitted with --max-restarts 0", args[0], job.ID)
	}
	if err != nil {
		return fmt.Errorf("%s job %s: %w", args[0], job.ID, err)
	}
	return nil
}

// hasEnded reports whether a command's error says that the job has ended.
func hasEnded(err error) bool { return said(err, "already completing or completed") }
