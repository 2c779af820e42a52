package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
)

// saver writes and reads checkpoints. Rank 0 has the folder; the others only know that there is
// one. A nil saver does nothing.
type saver struct {
	world  *distributed.World
	path   string
	dir    *checkpoint.Dir    // Nil on other ranks.
	writer *checkpoint.Writer // As above.
	others *others            // As above.
}

func newSaver(w *distributed.World, c Config) (*saver, error) {
	path := c.Checkpoint.Dir
	if path == "" || c.Checkpoint.Off {
		return nil, nil
	}
	s := &saver{world: w, path: path}
	report := func(message string) { w.Printf("checkpoint: %s\n", message) }
	err := w.OnMain(func() (err error) {
		s.dir, err = checkpoint.Open(path, checkpoint.Options{Keep: c.Checkpoint.Keep, Metric: c.Checkpoint.Monitor, Mode: checkpoint.Mode(c.Checkpoint.Mode), Check: checkWeights, Report: report})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("trainer: checkpoints in %s: %w: choose another folder with checkpoint.dir, or turn checkpoints off with checkpoint.off", path, err)
	}
	if w.IsMain() {
		s.writer, s.others = checkpoint.NewWriter(s.dir), newOthers(path)
		w.OnClose(s.writer.Close)
	}
	return s, nil
}

// fileName makes a name usable as the name of a folder.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == 0 || r == '\\' {
			return '_'
		}
		return r
	}, name)
}

func (s *saver) folder() string {
	if s == nil {
		return ""
	}
	return s.path
}

// wait blocks until the checkpoints are on disk. Only rank 0 waits.
func (s *saver) wait() error {
	if s == nil || s.writer == nil {
		return nil
	}
	return s.world.Alone("writes a checkpoint", s.writer.Wait)
}

// release finishes the writes under way and frees the memory of the last snapshot: a sweep may
// train many times before it closes the world.
func (s *saver) release() {
	if s != nil && s.writer != nil {
		_ = s.world.Alone("writes a checkpoint", func() error { s.writer.Release(); return nil })
	}
}

// newestWeights returns the path of the weights in the newest checkpoint, on rank 0; "" if there is
// none.
func (s *saver) newestWeights() (string, error) {
	all, err := checkpoint.List(s.path)
	if err != nil || len(all) == 0 || !all[0].Valid() {
		return "", err
	}
	return filepath.Join(all[0].Path, checkpoint.WeightsFile), nil
}

// save writes a checkpoint of the current state. It is collective. The training waits only for the
// copy to host memory.
func (r *run) save() error {
	if r.saver == nil {
		return nil
	}
	if r.savedAt(r.at) {
		r.saveDue = false
		return nil
	}
	defer r.recorder.During("checkpoint")()
	r.at.Elapsed = r.elapsed()
	at, err := r.wholePosition()
	if err != nil {
		return err
	}
	state, err := r.randoms.state()
	if err != nil {
		return err
	}
	ranks, err := r.world.AllGather(state)
	if err != nil {
		return err
	}
	whole, err := r.step.WholeState(r.snapshot)
	if err := r.world.Together(err); err != nil {
		return fmt.Errorf("save a checkpoint: put together the parts of the ranks: %w", err)
	}
	if err := r.world.OnMain(func() error { return r.hand(at, ranks, whole) }); err != nil {
		return fmt.Errorf("save a checkpoint: %w", err) // The error names the folder and the step: that of the previous checkpoint, which was still being written.
	}
	r.lastSave, r.saveDue = time.Now(), false
	saved := r.at
	r.saved = &saved
	return r.call(onCheckpoint)
}

// savedAt reports whether the newest checkpoint is already of this position.
func (r *run) savedAt(at position) bool {
	s := r.saved
	return s != nil && s.Step == at.Step && s.Epoch == at.Epoch && s.Batch == at.Batch && s.Validated == at.Validated && s.Finished == at.Finished
}

// wholePosition returns the position with the losses of all ranks. Only rank 0's result is used.
func (r *run) wholePosition() (position, error) {
	at := r.at
	sums := make([]float64, 0, 2*len(at.Since))
	for _, m := range at.Since {
		sums = append(sums, float64(m.Sum), m.Count)
	}
	if err := r.world.AllReduceSum(sums); err != nil {
		return at, err
	}
	at.Since = make([]mean, len(at.Since))
	for i := range at.Since {
		at.Since[i] = mean{checkpoint.Number(sums[2*i]), sums[2*i+1]}
	}
	at.BaseRates, at.Seed, at.BatchSize, at.Batches, at.PerUpdate = r.rates.base, r.config.Seed, r.config.BatchSize, r.plan.batches, r.plan.perUpdate
	at.Dataset, at.Examples, at.InOrder, at.Precision = r.plan.dataset, r.plan.examples, r.config.inOrder(), r.config.Precision
	at.Run, at.Name = r.env.RunName(), r.config.Name
	if r.saver.others != nil {
		at.Writer = r.saver.others.self
	}
	at.BeganAfter = r.beganAfter
	at.State = r.step.State()
	at.Metrics = checkpoint.Metrics(maps.Clone(r.metrics))
	var err error
	if at.Stream, err = r.wholeStream(at.Stream); err != nil {
		return at, err
	}
	at.Callbacks, err = r.callbackStates()
	return at, err
}

// hand passes a snapshot to the writer, on rank 0. whole is what rank 0's store has only a part of.
func (r *run) hand(at position, ranks [][]byte, whole map[string]*tensors.Tensor) error {
	if r.env.Superseded() {
		return errors.New("the scheduler lost this node and started the run again: the checkpoints now belong to the new start")
	}
	if err := r.saver.others.check(at.Run); err != nil {
		return err
	}
	snapshot, err := r.saver.writer.Take(r.store, r.step.IsWeight)
	if err != nil {
		return err
	}
	maps.Copy(snapshot.Tensors, whole)
	snapshot.Step = at.Step
	snapshot.WorldSize = r.world.Size()
	snapshot.CodeHash = codeHash()
	snapshot.Ranks = ranks
	if at.Validated == at.Step {
		maps.Copy(snapshot.Metrics, r.metrics)
	}
	if snapshot.Progress[positionKey], err = json.Marshal(at); err != nil {
		return err
	}
	return r.saver.writer.Save(snapshot)
}

// positionKey is the key of the trainer's position in a checkpoint.
const positionKey = "trainer"
