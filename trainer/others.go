package trainer

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"gonbatch/checkpoint"
)

// others finds the checkpoints that another process writes to this training's folder meanwhile:
// each would resume the other's training, and remove its checkpoints. Rank 0 has one.
type others struct {
	path  string
	self  string               // The name of this trainer in the checkpoints that it writes.
	known map[string]time.Time // The checkpoints that were there when Fit began, by their folders.
}

func newOthers(path string) *others { return &others{path: path, self: rand.Text()} }

// note takes what is in the folder for granted.
func (o *others) note() {
	o.known = map[string]time.Time{}
	for _, info := range o.list() {
		o.known[info.Path] = info.Time
	}
}

// check finds a checkpoint that is neither known nor this trainer's. Those of an earlier start of
// the same run don't count: its scheduler has lost it, and rundir.Superseded ends it.
func (o *others) check(run string) error {
	for _, info := range o.list() {
		if at, ok := o.known[info.Path]; ok && at.Equal(info.Time) {
			continue
		}
		var by position
		if err := json.Unmarshal(info.Progress[positionKey], &by); err != nil || by.Writer == o.self || run != "" && by.Run == run {
			continue
		}
		return fmt.Errorf("%s was written by another process meanwhile (training %q of %s): two trainings save to one folder: give each its own (checkpoint.dir)",
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

// list is what can be read of the folder's checkpoints.
func (o *others) list() (whole []checkpoint.Info) {
	all, err := checkpoint.List(o.path)
	if err != nil {
		return nil // To save will say so.
	}
	for _, info := range all {
		if info.Valid() {
			whole = append(whole, info)
		}
	}
	return whole
}
