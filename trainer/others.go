package trainer

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"gonbatch/checkpoint"
)

// others detects checkpoints that another process writes to this training run's folder at the same
// time: each process would resume the other's training and remove its checkpoints. Only rank 0 has
// one.
type others struct {
	path  string
	self  string               // Identifies this trainer in the checkpoints that it writes.
	known map[string]time.Time // The times of the checkpoints that were there when Fit began, by their folders.
}

func newOthers(path string) *others { return &others{path: path, self: rand.Text()} }

// note accepts the checkpoints that are already in the folder.
func (o *others) note() {
	o.known = map[string]time.Time{}
	for _, info := range o.list() {
		o.known[info.Path] = info.Time
	}
}

// check finds a checkpoint that is neither known nor this trainer's. It ignores those of an earlier
// start of the same run: its scheduler has lost that start, and rundir.Superseded ends it.
func (o *others) check(run string) error {
	for _, info := range o.list() {
		if at, ok := o.known[info.Path]; ok && at.Equal(info.Time) {
			continue
		}
		var by position
		if err := json.Unmarshal(info.Progress[positionKey], &by); err != nil || by.Writer == o.self || run != "" && by.Run == run {
			continue
		}
		return fmt.Errorf("%s was written by another process meanwhile (training %q of %s): two training runs save to one folder: give each its own (checkpoint.dir)",
			info.Path, by.Name, describeRun(by.Run))
	}
	return nil
}

func describeRun(run string) string {
	if run == "" {
		return "a program outside of a run"
	}
	return "the run " + run
}

// list returns the readable checkpoints in the folder.
func (o *others) list() (whole []checkpoint.Info) {
	all, err := checkpoint.List(o.path)
	if err != nil {
		return nil // Saving will report the error.
	}
	for _, info := range all {
		if info.Valid() {
			whole = append(whole, info)
		}
	}
	return whole
}
