package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
	"gonbatch/trainer/internal/saved"
)

// openFolder opens the folder of checkpoints; nil if there are none.
func openFolder(w *distributed.World, c Config) (*saved.Folder, error) {
	path := c.Checkpoint.Dir
	if path == "" || c.Checkpoint.Off {
		return nil, nil
	}
	report := func(message string) { w.Printf("checkpoint: %s\n", message) }
	f, err := saved.Open(w, path, checkpoint.Options{Keep: c.Checkpoint.Keep, Metric: c.Checkpoint.Monitor, Mode: checkpoint.Mode(c.Checkpoint.Mode), Check: checkWeights, Report: report})
	if err != nil {
		return nil, fmt.Errorf("trainer: checkpoints in %s: %w: choose another folder with checkpoint.dir, or turn checkpoints off with checkpoint.off", path, err)
	}
	return f, nil
}

// save writes a checkpoint of the current state. It is collective. The training waits only for the
// copy to host memory.
func (r *run) save() error {
	if r.folder == nil {
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
	state, err := r.randoms.State()
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
	at = r.at
	r.saved = &at
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
	at.By = saved.By{Run: r.env.RunName(), Name: r.config.Name, Writer: r.folder.Self}
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
	snapshot, err := r.folder.Take(r.store, r.step.IsWeight, at.Run)
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
	if snapshot.Progress[saved.Key], err = json.Marshal(at); err != nil {
		return err
	}
	return r.folder.Save(snapshot)
}
