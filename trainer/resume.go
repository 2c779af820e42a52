package trainer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
)

// origin is what the other ranks must know of the checkpoint that rank 0 goes on from.
type origin struct {
	Found     bool
	Path      string
	At        position
	WorldSize int
	CodeHash  string
	Ranks     [][]byte
	Tensors   []tensorInfo
}

type tensorInfo struct {
	Name       string
	DType      dtypes.DType
	Dimensions []int
	Weight     bool
}

// resume goes on from the newest valid checkpoint, once in a trainer's life. Rank 0 reads it and sends it to the others.
func (t *Trainer) resume() error {
	if t.saver == nil || t.resumed || t.config.Checkpoint.Resume == "never" {
		if t.saver == nil && t.config.Checkpoint.Resume == "must" {
			return fmt.Errorf("checkpoint.resume is \"must\", but there is no folder of checkpoints: set checkpoint.dir")
		}
		return nil
	}
	t.resumed = true
	var from origin
	if err := t.world.OnMain(func() (err error) { from, err = t.readOrigin(); return err }); err != nil {
		return fmt.Errorf("go on from %s: %w", t.saver.path, err)
	}
	data, err := json.Marshal(from)
	if err != nil {
		return err
	}
	if data, err = t.world.Broadcast(data); err != nil {
		return err
	}
	from = origin{}
	if err := json.Unmarshal(data, &from); err != nil {
		return err
	}
	if !from.Found {
		if t.config.Checkpoint.Resume == "must" {
			return fmt.Errorf("checkpoint.resume is \"must\", but there is no valid checkpoint in %s", t.saver.path)
		}
		return nil
	}
	if err := t.shareSnapshot(from); err != nil {
		return fmt.Errorf("share %s: %w", from.Path, err)
	}
	if err := t.snapshot.Restore(t.store); err != nil {
		return err
	}
	if err := t.goOnFrom(from); err != nil || !t.at.Finished {
		return err
	}
	return t.snapshot.Create(t.store) // No step will ask for the variables.
}

// shareSnapshot gives the other ranks rank 0's snapshot.
func (t *Trainer) shareSnapshot(from origin) error {
	if !t.world.IsMain() {
		t.snapshot = &checkpoint.Snapshot{Step: from.At.Step, Tensors: map[string]*tensors.Tensor{}, Weights: map[string]bool{}, Path: from.Path}
	}
	if t.world.Size() == 1 {
		return nil
	}
	for _, info := range from.Tensors {
		if !t.world.IsMain() {
			t.snapshot.Tensors[info.Name] = tensors.FromShape(shapes.Make(info.DType, info.Dimensions...))
			t.snapshot.Weights[info.Name] = info.Weight
		}
		if err := t.shareTensor(t.snapshot.Tensors[info.Name]); err != nil {
			return fmt.Errorf("%s: %w", info.Name, err)
		}
	}
	return nil
}

func (t *Trainer) shareTensor(tensor *tensors.Tensor) error {
	if tensor.Shape().IsZeroSize() {
		return nil
	}
	var sendErr error
	err := tensor.MutableBytes(func(data []byte) {
		var got []byte
		got, sendErr = t.world.Broadcast(data)
		copy(data, got)
	})
	return errors.Join(err, sendErr)
}

// readOrigin is rank 0's part.
func (t *Trainer) readOrigin() (origin, error) {
	snapshot, err := t.saver.dir.Latest(func(message string) { t.printf("checkpoint: %s\n", message) })
	if err != nil || snapshot == nil {
		return origin{}, err
	}
	from := origin{Found: true, Path: snapshot.Path, WorldSize: snapshot.WorldSize, CodeHash: snapshot.CodeHash, Ranks: snapshot.Ranks}
	progress, ok := snapshot.Progress[positionKey]
	if !ok {
		return origin{}, fmt.Errorf("%s is not a checkpoint of a trainer: use another checkpoint.dir", snapshot.Path)
	}
	if err := json.Unmarshal(progress, &from.At); err != nil {
		return origin{}, fmt.Errorf("%s: %w", snapshot.Path, err)
	}
	if err := t.comparePosition(from.At); err != nil {
		return origin{}, fmt.Errorf("%s: %w", snapshot.Path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(snapshot.Tensors)) {
		shape := snapshot.Tensors[name].Shape()
		from.Tensors = append(from.Tensors, tensorInfo{name, shape.DType, shape.Dimensions, snapshot.Weights[name]})
	}
	t.snapshot = snapshot
	return from, nil
}

// comparePosition finds configurations that would make the position mean something else.
func (t *Trainer) comparePosition(at position) error {
	if at.Seed != t.config.Seed {
		return fmt.Errorf("it is of a training with seed %d, this one has %d: use the same, or another checkpoint.dir", at.Seed, t.config.Seed)
	}
	if at.BatchSize != t.config.BatchSize {
		return fmt.Errorf("it is of a training with batches of %d examples, this one has %d: use the same, or another checkpoint.dir", at.BatchSize, t.config.BatchSize)
	}
	if at.Batch > t.plan.batches || at.Batch > 0 && at.Batches != t.plan.batches {
		return fmt.Errorf("it is of a training with %d batches in an epoch, this one has %d: has the dataset changed?", at.Batches, t.plan.batches)
	}
	return nil
}

func (t *Trainer) goOnFrom(from origin) error {
	t.at = from.At
	t.at.Restarts++
	t.rates.base = from.At.BaseRates
	if t.rates.base == nil {
		t.rates.base = map[string]number{}
	}
	if !t.world.IsMain() {
		t.at.Since = nil // Rank 0 has all that is in the books.
	}
	if t.at.Finished && t.notEnough() {
		t.at.Finished = false // The limits were raised.
	}
	if from.WorldSize == t.world.Size() && t.world.Rank() < len(from.Ranks) {
		t.randoms.pending = from.Ranks[t.world.Rank()]
	} else {
		t.printf("the checkpoint is of %d ranks, this is a job of %d: the order of the examples stays the same, random numbers of the model do not\n", from.WorldSize, t.world.Size())
	}
	if hash := codeHash(); from.CodeHash != "" && hash != "" && from.CodeHash != hash {
		t.printf("the checkpoint is of another build of this program\n")
	}
	state := "goes on"
	if t.at.Finished {
		state = "was finished"
	}
	t.printf("training %s after step %d, epoch %d, from %s\n", state, t.at.Step, t.at.Epoch+1, from.Path)
	return t.restoreCallbacks(from.At.Callbacks)
}

// notEnough tells whether a training that reached its end has a further one now.
func (t *Trainer) notEnough() bool {
	return t.config.MaxEpochs > t.at.Epoch && (t.config.MaxSteps == 0 || t.config.MaxSteps > int(t.at.Step))
}

// checkRestored finds, once the model is built, variables that the checkpoint has and the model hasn't, and the other way round.
func (t *Trainer) checkRestored() error {
	if t.snapshot == nil {
		return nil
	}
	err := t.snapshot.Check(t.store)
	t.snapshot = nil
	return err
}
