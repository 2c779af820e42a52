// Package submit holds the vocabulary of submission: a JobSpec describes what to run and with which
// resources, a Scheduler runs it, a Job is a job that a scheduler accepted, and a State is its
// state. The schedulers themselves are in subpackages.
//
//	spec := submit.JobSpec{Name: "mnist", Nodes: 2, TasksPerNode: 1, Time: "30:00", RunDir: dir, Cells: cells}
//	if err := spec.Validate(); err != nil {
//		return err
//	}
//	job, err := scheduler.Submit(ctx, spec)
//	status, err := submit.Follow(ctx, scheduler, job, submit.FollowOptions{Out: os.Stdout, Progress: os.Stderr})
package submit
