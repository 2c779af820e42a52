// Package submit holds the vocabulary of submission: a JobSpec says what to run and with what, a
// Scheduler runs it, a Job is what a scheduler accepted, a State is how it is doing. The schedulers
// themselves are in the packages below.
//
//	spec := submit.JobSpec{Name: "mnist", Nodes: 2, TasksPerNode: 1, Time: "30:00", RunDir: dir, Cells: cells}
//	if err := spec.Validate(); err != nil {
//		return err
//	}
//	job, err := scheduler.Submit(ctx, spec)
//	status, err := submit.Follow(ctx, scheduler, job, submit.FollowOptions{Out: os.Stdout, Progress: os.Stderr})
package submit
