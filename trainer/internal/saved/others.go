package saved

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/checkpoint"
	"gonbatch/internal/rundir"
)

// Key is the key of the trainer's position in a checkpoint.
const Key = "trainer"

// By identifies the training run that has written a checkpoint. It is a part of its position.
type By struct {
	Run    string `json:"run,omitempty"` // The name of the run directory, if there is one.
	Name   string `json:"name"`          // Of the training run.
	Writer string `json:"writer"`        // A random number that identifies the trainer.
}

// Note accepts the checkpoints that are already in the folder, on rank 0. Those that another
// process writes to it later are refused: each process would resume the other's training and remove
// its checkpoints.
func (f *Folder) Note() {
	if f == nil || f.writer == nil {
		return
	}
	f.known = map[string]time.Time{}
	for _, info := range f.list() {
		f.known[info.Path] = info.Time
	}
}

// check finds a checkpoint that is neither known nor this trainer's. It ignores those of an earlier
// start of the same run: its scheduler has lost that start, and rundir.Superseded ends it.
func (f *Folder) check(run string) error {
	for _, info := range f.list() {
		if at, ok := f.known[info.Path]; ok && at.Equal(info.Time) {
			continue
		}
		var by By
		if err := json.Unmarshal(info.Progress[Key], &by); err != nil || by.Writer == f.Self || run != "" && by.Run == run {
			continue
		}
		return fmt.Errorf("%s was written by another process meanwhile (training %q of %s): two training runs save to one folder: give each its own (checkpoint.dir)",
			info.Path, by.Name, describeRun(by.Run))
	}
	return nil
}

// list returns the readable checkpoints in the folder.
func (f *Folder) list() (whole []checkpoint.Info) {
	all, err := checkpoint.List(f.Path)
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

// CheckOrigin returns an error if the newest checkpoint in a folder outside of the run is that of
// another run, and isn't the one from which this run began: a restart would go on with the other
// run's weights, and call them its own. path is that checkpoint, empty if there is none, and by has
// written it; name is that of the training run. Only rank 0 calls it.
func (f *Folder) CheckOrigin(env rundir.Env, name, path string, by By) error {
	if f == nil || !env.InRun() || path != "" && by.Run == env.RunName() || within(f.Path, env.Dir.Checkpoints()) {
		return nil
	}
	origin := "none\n"
	if path != "" {
		origin = fmt.Sprintf("%s of %s %s\n", filepath.Base(path), by.Run, by.Writer)
	}
	record := filepath.Join(env.Dir.Origins(), fmt.Sprintf("%s-%.4x", FileName(name), sha256.Sum256([]byte(f.realPath()))))
	first, err := os.ReadFile(record)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(env.Dir.Origins(), 0o777); err != nil {
			return err
		}
		return rundir.WriteFileAtomic(record, []byte(origin), 0o666)
	case err != nil || string(first) == origin:
		return err
	case path == "":
		return nil // The checkpoint from which it began was removed.
	}
	return fmt.Errorf("%s was written by %s, which has trained in this folder since this run began: two training runs save to one folder: give each its own (checkpoint.dir); to go on from that checkpoint, submit the notebook as a new run", path, describeRun(by.Run))
}

// FileName makes a name usable as the name of a folder.
func FileName(name string) string {
	return strings.NewReplacer("/", "_", "\x00", "_", "\\", "_").Replace(name)
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
