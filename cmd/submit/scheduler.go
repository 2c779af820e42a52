package main

import (
	"strings"

	"gonbatch/submit"
	"gonbatch/submit/local"
	"gonbatch/submit/run"
	"gonbatch/submit/slurm"
)

// schedulers create all schedulers that submit knows, the default first. A new scheduler is one
// more line.
var schedulers = []func(submit.Shell) submit.Scheduler{
	func(s submit.Shell) submit.Scheduler { return slurm.New(s) },
	func(s submit.Shell) submit.Scheduler { return local.New(s, run.Locate) },
}

// schedulers returns all schedulers, for this command.
func (a *app) schedulers() (all []submit.Scheduler) {
	for _, newScheduler := range schedulers {
		all = append(all, newScheduler(a.Shell))
	}
	return all
}

// schedulerNames returns the values of --scheduler.
func schedulerNames() (names []string) {
	for _, s := range (&app{}).schedulers() {
		names = append(names, s.Name())
	}
	return names
}

// updatableOptions returns the options that a scheduler can change in its queue.
func updatableOptions() (names []string) {
	for _, s := range (&app{}).schedulers() {
		if c, ok := s.(submit.Controller); ok {
			names = append(names, c.Updatable()...)
		}
	}
	return names
}

// schedulerName returns the scheduler that the options name: --local is short for
// --scheduler=local, and the command line overrides a file.
func (o *submitOptions) schedulerName() (string, error) {
	switch {
	case !o.Local, o.flags.Changed("scheduler") && !o.flags.Changed("local"):
		return o.SchedulerName, nil
	case o.flags.Changed("scheduler") && o.SchedulerName != local.Name:
		return "", submit.Usagef("--local and --scheduler=%s: give one of them", o.SchedulerName)
	}
	return local.Name, nil
}

// scheduler returns the scheduler that the options name.
func (o *submitOptions) scheduler(a *app) (submit.Scheduler, error) {
	name, err := o.schedulerName()
	if err != nil {
		return nil, err
	}
	for _, s := range a.schedulers() {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, submit.Usagef("--scheduler=%q: give one of %s", name, strings.Join(schedulerNames(), ", "))
}

// runJob is what a batch script becomes.
func runJob(shell submit.Shell, args []string) int { return slurm.RunJob(shell, args) }
