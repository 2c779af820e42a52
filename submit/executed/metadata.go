package executed

import "time"

// papermillKey and ownKey are the keys of the metadata: papermill's, for tools that know it, and
// our own.
const (
	papermillKey = "papermill"
	ownKey       = "gonbatch"
)

// The states of a cell, in papermill's words. A notebook can also be stopped: its job has saved and
// can be resumed.
const (
	pending   = "pending"
	running   = "running"
	completed = "completed"
	failed    = "failed"
	stopped   = "stopped"
)

// cellTimes is papermill's metadata of a cell.
type cellTimes struct {
	Duration  *float64   `json:"duration"`
	EndTime   *time.Time `json:"end_time"`
	Exception *bool      `json:"exception"`
	StartTime *time.Time `json:"start_time"`
	Status    string     `json:"status"`
}

// begin notes that the cell runs, again or for the first time.
func (c *cellTimes) begin(now time.Time) {
	if c.StartTime == nil {
		c.StartTime = &now
	}
	c.Status, c.EndTime, c.Duration, c.Exception = running, nil, nil, nil
}

// end notes that the cell has ended.
func (c *cellTimes) end(now time.Time, status string) {
	if c.StartTime == nil {
		c.StartTime = &now
	}
	seconds, exception := now.Sub(*c.StartTime).Seconds(), status == failed
	c.Status, c.EndTime, c.Duration, c.Exception = status, &now, &seconds, &exception
}

// cellNotes is our own metadata of a cell.
type cellNotes struct {
	// Cells are the names of the job's cells that the cell became; Done are those that have
	// succeeded.
	Cells []string `json:"cells,omitempty"`
	Done  []string `json:"done,omitempty"`
	// LeftOut is set if the cell is not part of the job.
	LeftOut bool `json:"left_out,omitempty"`
	// Alias is the cell's label in the notebook of the kernel's session.
	Alias string `json:"alias,omitempty"`
	// Reused is the run that the cell's outputs come from if this one did not run the cell.
	Reused string `json:"reused_from,omitempty"`
}

// runTimes is papermill's metadata of a notebook.
type runTimes struct {
	Parameters        map[string]string `json:"parameters"`
	DefaultParameters map[string]any    `json:"default_parameters"`
	Environment       map[string]any    `json:"environment_variables"`
	Duration          *float64          `json:"duration"`
	EndTime           *time.Time        `json:"end_time"`
	Exception         *bool             `json:"exception"`
	StartTime         *time.Time        `json:"start_time"`
	InputPath         string            `json:"input_path"`
	OutputPath        string            `json:"output_path"`
	Version           string            `json:"version"`
}

// runNotes is our own metadata of a run.
type runNotes struct {
	Run   string `json:"run"`
	JobID string `json:"job_id,omitempty"`
	Host  string `json:"host,omitempty"`
	State string `json:"state"`
	// Starts counts how often the job was started.
	Starts int `json:"starts"`
	// Reason is why the job failed.
	Reason string `json:"reason,omitempty"`
}
