package trainer_test

import (
	"bytes"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestUpdatesInPlace: XLA writes the new values of weights, of the optimizer's moments and of sums
// of gradients to the memory of the old ones, on all devices and ranks. So there is one copy.
func TestUpdatesInPlace(t *testing.T) { everywhere(t, testUpdatesInPlace) }

func testUpdatesInPlace(t *testing.T) {
	for _, batches := range []int{1, 3} {
		testInPlace(t, batches, "auto")
		if world(t).Devices() == 1 {
			testInPlace(t, batches, "zero1")
		}
	}
}

func testInPlace(t *testing.T, batches int, strategy string) {
	t.Helper()
	var first map[string][]*byte
	look := trainer.Callback{Name: "look", BatchEnd: func(e *trainer.Event) error {
		if e.Step == 2 && first == nil {
			first = places(t, e.Trainer.Store())
		}
		return nil
	}}
	c := trainer.Config{Strategy: strategy, MaxSteps: 6, BatchSize: 12, AccumulateGradBatches: batches, Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, blobTask(smallNet), trainer.WithCallbacks(look))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	last := places(t, tr.Store())
	for path, places := range first {
		for device, place := range places {
			if last[path][device] != place {
				t.Errorf("%s, %d batches for an update: %s was moved on device %d", strategy, batches, path, device)
			}
		}
	}
	if len(first) < 10 {
		t.Errorf("only %d variables were there", len(first))
	}
}

// places are where the variables are, on each device. Scalars and random states don't matter.
func places(t *testing.T, store *model.Store) map[string][]*byte {
	t.Helper()
	all := map[string][]*byte{}
	for v := range store.IterVariables() {
		if !v.HasValue() || v.Shape().IsScalar() || v.Name() == model.RNGStateVariableName {
			continue
		}
		for _, shard := range shards(t, v) {
			if err := shard.ConstBytes(func(data []byte) { all[v.Path()] = append(all[v.Path()], &data[0]) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

// shards are the values of a variable on each device.
func shards(t *testing.T, v *model.Variable) []*tensors.Tensor {
	t.Helper()
	if v.ShardingSpec() == nil {
		return []*tensors.Tensor{v.MustValue()}
	}
	d, err := v.DistributedValue()
	if err != nil {
		t.Fatal(err)
	}
	return d.Shards()
}

// TestCheckpointDuringSteps: a checkpoint has the values of its own step, though it is written
// while later steps overwrite these in place and the next batches are loaded.
func TestCheckpointDuringSteps(t *testing.T) { everywhere(t, testCheckpointDuringSteps) }

func testCheckpointDuringSteps(t *testing.T) {
	trained := make(chan struct{})
	wait := func(*checkpoint.Snapshot) error { <-trained; return nil }
	dir, err := checkpoint.Open(t.TempDir(), checkpoint.Options{Check: wait})
	if err != nil {
		t.Fatal(err)
	}
	writer := checkpoint.NewWriter(dir)
	var want map[string][]byte
	save := trainer.Callback{Name: "save", BatchEnd: func(e *trainer.Event) error {
		if e.Step != 3 {
			return nil
		}
		want = weights(t, e.Trainer.Store())
		snapshot, err := writer.Take(e.Trainer.Store(), nil)
		if err != nil {
			return err
		}
		return writer.Save(snapshot)
	}}
	c := trainer.Config{MaxSteps: 8, BatchSize: 12, Loggers: []string{"none"}}
	tr, _ := newTrainer(t, c, blobTask(smallNet), trainer.WithCallbacks(save))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	after := weights(t, tr.Store())
	close(trained)
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	saved, err := dir.Latest(func(message string) { t.Error(message) })
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for path, value := range want {
		if err := saved.Tensors[path].ConstBytes(func(data []byte) {
			if !bytes.Equal(data, value) {
				t.Errorf("%s is not that of step 3", path)
			}
		}); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(after[path], value) {
			moved++
		}
	}
	if moved < len(want)/2 || len(want) < 10 {
		t.Errorf("the steps after the checkpoint changed %d of %d variables", moved, len(want))
	}
}
