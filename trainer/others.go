package trainer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"gonbatch/checkpoint"
	"gonbatch/internal/rundir"
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

// checkOrigin returns an error if the newest checkpoint in a folder outside of the run is that of
// another run, and isn't the one from which this run began: a restart would go on with the other
// run's weights, and call them its own. Only rank 0 calls it.
func (t *Trainer) checkOrigin() error {
	if t.saver == nil || !t.env.InRun() || t.origin.Found && t.origin.At.Run == t.env.RunName() || within(t.saver.path, t.env.Dir.Checkpoints()) {
		return nil
	}
	origin := "none\n"
	if t.origin.Found {
		origin = fmt.Sprintf("%s of %s %s\n", filepath.Base(t.origin.Path), t.origin.At.Run, t.origin.At.Writer)
	}
	path := filepath.Join(t.env.Dir.Origins(), fmt.Sprintf("%s-%.4x", fileName(t.config.Name), sha256.Sum256([]byte(t.saver.realPath()))))
	first, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(t.env.Dir.Origins(), 0o777); err != nil {
			return err
		}
		return rundir.WriteFileAtomic(path, []byte(origin), 0o666)
	case err != nil || string(first) == origin:
		return err
	case !t.origin.Found:
		return nil // The checkpoint from which it began was removed.
	}
	return fmt.Errorf("%s was written by %s, which has trained in this folder since this run began: two training runs save to one folder: give each its own (checkpoint.dir); to go on from that checkpoint, submit the notebook as a new run", t.origin.Path, describeRun(t.origin.At.Run))
}

// noteTraining records in the run that this cell trains. Only rank 0 calls it.
func (t *Trainer) noteTraining() error {
	if t.saver == nil || !t.env.InRun() || t.env.Cell == "" {
		return nil
	}
	return rundir.MarkTrained(t.env.Dir, t.env.Cell)
}

// within reports whether a path is in a folder.
func within(path, folder string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(relative)
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
