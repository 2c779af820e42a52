package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// Run describes the state of a run.
type Run struct {
	// Run is the run's name, and Directory its directory.
	Run       string `json:"run"`
	Directory string `json:"directory"`
	// Scheduler is "slurm" or "local". Job is the scheduler's id of the job, and Cluster its
	// cluster; "" if there is none.
	Scheduler string `json:"scheduler"`
	Job       string `json:"job,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	// Sweep is the sweep that the run is of; "" if it is of none.
	Sweep string `json:"sweep,omitempty"`
	// Notebook is the notebook's path. Gone is set if it is no longer there: the run directory has
	// a copy.
	Notebook string    `json:"notebook"`
	Gone     bool      `json:"notebook_gone,omitempty"`
	Created  time.Time `json:"created"`
	// State is one of "staged", "pending", "running", "suspended", "completed", "failed",
	// "stopped", "cancelled", "timed out", "out of memory", "node failed", "preempted", "lost" or
	// "unknown". Ended is set if the run has ended.
	State string `json:"state"`
	Ended bool   `json:"ended"`
	// Message is the state and its reason in one line for people.
	Message string `json:"message"`
	// Reason is the scheduler's reason for the state.
	Reason string `json:"reason,omitempty"`
	// ExitCode and Signal are the job's, once it has ended.
	ExitCode int `json:"exit_code,omitempty"`
	Signal   int `json:"signal,omitempty"`
	// Restarts counts the restarts of the run.
	Restarts int `json:"restarts"`
	// Cells counts the job's cells, and those that have succeeded.
	Cells Cells `json:"cells"`
	// Checkpoint is the newest checkpoint; nil if there is none.
	Checkpoint *Checkpoint `json:"checkpoint,omitempty"`
	// Used is what an ended run has used; nil if that isn't known.
	Used *Used `json:"used,omitempty"`
	// Failure is why an ended run did not succeed, with the end of the log.
	Failure string `json:"failure,omitempty"`
	// OtherJobs are the ids of other jobs of the run that have not ended; there should be none.
	OtherJobs []string `json:"other_jobs,omitempty"`
	// Error is why the run's state is unknown.
	Error string `json:"error,omitempty"`
}

// Text writes the state as a list of names and values.
func (r Run) Text(w io.Writer) error {
	fmt.Fprintf(w, "run:           %s\n", r.Run)
	if r.Job != "" {
		fmt.Fprintf(w, "job:           %s\n", r.Job)
	}
	if len(r.OtherJobs) > 0 {
		fmt.Fprintf(w, "other jobs:    %s have not ended either: end all with submit cancel %s\n", strings.Join(r.OtherJobs, ", "), r.Run)
	}
	notebook := r.Notebook
	if r.Gone {
		notebook = fmt.Sprintf("%s (submitted as %s, which is gone)", rundir.At(r.Directory).Notebook(), r.Notebook)
	}
	fmt.Fprintf(w, "state:         %s\nnotebook:      %s\n", r.Message, notebook)
	if r.Restarts > 0 {
		fmt.Fprintf(w, "restarts:      %d\n", r.Restarts)
	}
	if r.Cells.All > 1 {
		fmt.Fprintf(w, "cells:         %d of %d finished\n", r.Cells.Finished, r.Cells.All)
	}
	if c := r.Checkpoint; c != nil {
		fmt.Fprintf(w, "checkpoint:    after step %d, of %s, in %s\n", c.Update, c.Time.Local().Format(time.DateTime), c.Folder)
	}
	if r.Used != nil {
		fmt.Fprintf(w, "%s", r.Used)
	}
	_, err := fmt.Fprintf(w, "run directory: %s\n", r.Directory)
	if err == nil && r.Failure != "" {
		_, err = fmt.Fprintf(w, "\n%s\n", r.Failure)
	}
	return err
}

// Used is what a job has used: the most memory on one node, in bytes, and the CPUs that each rank
// kept busy on average.
type Used struct {
	Memory int64   `json:"memory_bytes"`
	Node   string  `json:"node"`
	CPUs   float64 `json:"cpus"`
	// Advice are options for the next job, where those of this one were far off.
	Advice string `json:"advice,omitempty"`
	// Text describes it for people.
	Text string `json:"-"`
}

// String returns the lines for people.
func (u Used) String() string {
	text := fmt.Sprintf("used:          %s\n", u.Text)
	if u.Advice != "" {
		text += fmt.Sprintf("next time:     %s\n", u.Advice)
	}
	return text
}

// Cells counts the cells of a run.
type Cells struct {
	All      int `json:"all"`
	Finished int `json:"finished"`
}

// Checkpoint is a checkpoint of a training run.
type Checkpoint struct {
	// Update is the number of updates before it, and Folder the folder of the training's
	// checkpoints.
	Update int64     `json:"update"`
	Time   time.Time `json:"time"`
	Folder string    `json:"folder"`
}

// Runs are the user's runs in a folder, the newest last, and the number of other users' runs there.
type Runs struct {
	Root   string `json:"root"`
	Runs   []Run  `json:"runs"`
	Others int    `json:"others,omitempty"`
	// WithUsed is set to show what each run has used.
	WithUsed bool `json:"-"`
	// Everywhere is set if the runs are those in all folders, and More if there are other folders.
	Everywhere bool `json:"-"`
	More       bool `json:"-"`
	// Filtered is set if the list leaves out runs on purpose.
	Filtered bool `json:"-"`
}

// Staged is the State of a run that, as far as is known, no scheduler has.
const Staged = "staged"

// Text writes a table.
func (l Runs) Text(w io.Writer) (err error) {
	defer func() {
		if l.Others > 0 && !l.Filtered && err == nil {
			_, err = fmt.Fprintf(w, "and %s of other users, which only their directories name\n", plural.Of(l.Others, "run"))
		}
	}()
	if len(l.Runs) == 0 {
		text := "no runs"
		if !l.Everywhere {
			text += " in " + l.Root
		}
		if l.Filtered {
			text += " that match"
		}
		if l.More && !l.Everywhere {
			text += "; submit list --everywhere lists those in other folders"
		}
		_, err := fmt.Fprintln(w, text)
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	title := "JOB\tCREATED\tRUN\tSTATE"
	if l.WithUsed {
		title += "\tUSED\tNEXT TIME"
	}
	fmt.Fprintln(table, title)
	for _, r := range l.Runs {
		created := "-"
		if !r.Created.IsZero() {
			created = r.Created.Local().Format(time.DateTime)
		}
		row := []string{dash(r.Job), created, r.Run, r.Message}
		if l.Everywhere {
			row[2] = r.Directory
		}
		if l.WithUsed && r.Used == nil {
			row = append(row, "-", "-")
		} else if l.WithUsed {
			row = append(row, r.Used.Text, dash(r.Used.Advice))
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	return table.Flush()
}
