package trainer

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
)

// trainings are the training runs that have ended in this program. Another training run in the same
// folder of checkpoints would find the folder's training finished and take its weights: the second
// fold of a cross-validation would get the weights of the first.
var trainings = &ended{names: map[string]string{}}

type ended struct {
	mu    sync.Mutex
	names map[string]string // By their folders.
}

// claim refuses a training run if its folder was already used by another training run of this
// program, unless Config demands that it resume that training run.
func (e *ended) claim(t *Trainer) error {
	if t.saver == nil || t.config.Checkpoint.Resume != "auto" {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if name, used := e.names[t.saver.realPath()]; used {
		return fmt.Errorf("its checkpoint folder, %s, belongs to %q, which this program has already finished: give each its own folder (checkpoint.dir); to continue that one, set checkpoint.resume to \"must\"", t.saver.path, name)
	}
	return nil
}

// end records that a training run has ended.
func (e *ended) end(t *Trainer) {
	if t.saver == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.names[t.saver.realPath()] = t.config.Name
}

// realPath returns the folder of checkpoints under the name that it has for every program.
func (s *saver) realPath() string {
	path := s.path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

// ofCode reports whether the folder of checkpoints is the kernel's, which belongs to the program's
// code.
func (t *Trainer) ofCode() bool {
	return t.saver != nil && t.env.Checkpoints != "" && strings.HasPrefix(t.saver.path, t.env.Checkpoints+string(filepath.Separator))
}
