package report

import (
	"fmt"
	"io"
)

// Submission is what became of a notebook, or of a run that is resumed. With --json it is the first
// line on standard output; what follows is the log, where that is shown.
type Submission struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Scheduler string `json:"scheduler"`
	// Job is the scheduler's id of the job; "" on this machine, and for a run that is only staged.
	Job string `json:"job,omitempty"`
	// Name is the job's name, and Ranks the number of its ranks on all nodes.
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Ranks int    `json:"ranks"`
	// Queue is the command that queues a run that is only staged, Follow the one that shows the log
	// of one that is queued.
	Queue  string `json:"queue,omitempty"`
	Follow string `json:"follow,omitempty"`
}

// Text says what to do next. A run on this machine shows its log instead.
func (s Submission) Text(w io.Writer) (err error) {
	switch {
	case s.Queue != "":
		_, err = fmt.Fprintf(w, "run directory: %s\nqueue it with:  %s\n", s.Directory, s.Queue)
	case s.Job != "":
		_, err = fmt.Fprintf(w, "job %s: %s on %d nodes, %d ranks\nrun directory: %s\n", s.Job, s.Name, s.Nodes, s.Ranks, s.Directory)
	}
	if s.Follow != "" && err == nil {
		_, err = fmt.Fprintf(w, "follow it:     %s\n", s.Follow)
	}
	return err
}

// Preview is a job that was not submitted.
type Preview struct {
	Scheduler string `json:"scheduler"`
	Name      string `json:"name"`
	Nodes     int    `json:"nodes"`
	Ranks     int    `json:"ranks"`
	// Script is the batch script that would start the job.
	Script string `json:"script"`
}

// Text writes the script.
func (p Preview) Text(w io.Writer) error {
	_, err := io.WriteString(w, p.Script)
	return err
}

// Cancellation is what became of a job that was to be cancelled.
type Cancellation struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Job       string `json:"job,omitempty"`
	// Ended is how the job had ended before, in a line for people; "" for one that was cancelled.
	Ended string `json:"ended,omitempty"`
	// Title names the job for people.
	Title string `json:"-"`
}

// Text says it.
func (c Cancellation) Text(w io.Writer) (err error) {
	if c.Ended != "" {
		_, err = fmt.Fprintf(w, "%s has ended: %s\n", c.Title, c.Ended)
		return err
	}
	_, err = fmt.Fprintf(w, "%s: cancelled\nrun directory: %s\n", c.Title, c.Directory)
	return err
}

// Program is what the version command says.
type Program struct {
	Submit string `json:"submit"`
	Go     string `json:"go"`
}

// Text says it in a line.
func (p Program) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "submit %s, %s\n", p.Submit, p.Go)
	return err
}
