package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"gonbatch/internal/plural"
)

// Submission describes a submitted notebook or a resumed run. With --json it is the first line on
// standard output; the log follows, if it is shown.
type Submission struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Scheduler string `json:"scheduler"`
	// Job is the scheduler's id of the job; "" on this machine, and for a run that is only staged.
	Job string `json:"job,omitempty"`
	// Name is the job's name, and Ranks the total number of its ranks.
	Name  string `json:"name"`
	Nodes int    `json:"nodes"`
	Ranks int    `json:"ranks"`
	// Expected is when the job was expected to start, if the scheduler has said so.
	Expected *Expected `json:"expected,omitempty"`
	// Queue is the command that queues a run that is only staged; Follow is the command that shows
	// the log of a queued run.
	Queue  string `json:"queue,omitempty"`
	Follow string `json:"follow,omitempty"`
}

// Text writes the job and what to do next. A run on this machine shows its log instead.
func (s Submission) Text(w io.Writer) (err error) {
	switch {
	case s.Queue != "":
		_, err = fmt.Fprintf(w, "run directory: %s\nqueue it with:  %s\n", s.Directory, s.Queue)
	case s.Job != "":
		_, err = fmt.Fprintf(w, "job %s: %s on %s, %s\nrun directory: %s\n", s.Job, s.Name, plural.Of(s.Nodes, "node"), plural.Of(s.Ranks, "rank"), s.Directory)
	}
	if s.Expected != nil && err == nil {
		_, err = fmt.Fprintf(w, "starts:        %s\n", s.Expected)
	}
	if s.Follow != "" && err == nil {
		_, err = fmt.Fprintf(w, "follow it:     %s\n", s.Follow)
	}
	return err
}

// Expected is when and where a job is expected to start: Seconds after it was queued.
type Expected struct {
	Start     time.Time `json:"start"`
	Seconds   int       `json:"seconds"`
	Nodes     string    `json:"nodes"`
	Partition string    `json:"partition"`
}

// String describes the start for people.
func (e Expected) String() string {
	when := "now"
	if wait := time.Duration(e.Seconds) * time.Second; wait >= time.Minute {
		when = fmt.Sprintf("expected %s, in %s", e.Start.Local().Format("2 Jan 15:04"), strings.TrimSuffix(wait.Round(time.Minute).String(), "0s"))
	}
	return fmt.Sprintf("%s, on %s of partition %s", when, e.Nodes, e.Partition)
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

// Cancellation is the result of cancelling a job.
type Cancellation struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Job       string `json:"job,omitempty"`
	// Ended is how the job had already ended, in a line for people; "" if it was cancelled.
	Ended string `json:"ended,omitempty"`
	// Also are the ids of other jobs of the run that were cancelled: requeued ones, for example.
	Also []string `json:"also,omitempty"`
	// Title is the job's name for people.
	Title string `json:"-"`
}

// Text writes the result.
func (c Cancellation) Text(w io.Writer) (err error) {
	for _, id := range c.Also {
		if _, err := fmt.Fprintf(w, "job %s, another job of the run: cancelled\n", id); err != nil {
			return err
		}
	}
	if c.Ended != "" {
		_, err = fmt.Fprintf(w, "%s has ended: %s\n", c.Title, c.Ended)
		return err
	}
	_, err = fmt.Fprintf(w, "%s: cancelled\nrun directory: %s\n", c.Title, c.Directory)
	return err
}

// Executed is the notebook that a run has executed.
type Executed struct {
	Run      string `json:"run"`
	Notebook string `json:"notebook"`
}

// Text writes the notebook's path.
func (e Executed) Text(w io.Writer) error {
	_, err := fmt.Fprintln(w, e.Notebook)
	return err
}

// Control is the result of holding, releasing, requeueing or updating a job.
type Control struct {
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Job       string `json:"job"`
	// Done is what was done: "held", "released", "requeued", or "updated: time, partition".
	Done string `json:"done"`
	// Title is the job's name for people.
	Title string `json:"-"`
}

// Text writes the result.
func (c Control) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %s\n", c.Title, c.Done)
	return err
}

// Program is the report of the version command.
type Program struct {
	Submit string `json:"submit"`
	Go     string `json:"go"`
}

// Text writes the versions in one line.
func (p Program) Text(w io.Writer) error {
	_, err := fmt.Fprintf(w, "submit %s, %s\n", p.Submit, p.Go)
	return err
}
