package trainer_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestRanksDiffer: ranks that would not do the same say so at once, all of them, with both values.
func TestRanksDiffer(t *testing.T) {
	if !ranktest.InRank() {
		if out, err := ranktest.Start(t, ranktest.Torchrun, 2, []string{"GONBATCH_DEVICES=1"}); err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	w := world(t)
	other := w.Rank() == 1
	points := func(first float32) data.Dataset {
		x := make([]float32, 48)
		x[7] = first
		ds, err := data.Tensors("points", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, 48, 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]int32, 48), 48, 1)})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	type setup struct {
		config               trainer.Config
		task                 trainer.Task
		options              []trainer.Option
		training, validation data.Dataset
	}
	tests := map[string]struct {
		change func(t *testing.T, s *setup)
		want   string
	}{
		"nothing":     {func(*testing.T, *setup) {}, ""},
		"loaders":     {func(_ *testing.T, s *setup) { s.config.Loader.Workers = choose(other, 1, 3) }, ""},
		"environment": {func(t *testing.T, _ *setup) { t.Setenv("TRAINER_GRADIENT_CLIP_NORM", choose(other, "", "0.001")) }, "gradient_clip_norm is 0.001 on rank 1 on "},
		"seed":        {func(_ *testing.T, s *setup) { s.config.Seed = uint64(choose(other, 1, 2)) }, "seed is 2 on rank 1 on "},
		"optimizer":   {func(_ *testing.T, s *setup) { s.task = sgdTask(choose(other, 0.1, 0.2)) }, "learning_rate is 0.2 on rank 1 on "},
		"option": {func(_ *testing.T, s *setup) {
			s.options = choose(other, nil, []trainer.Option{trainer.Freeze("/body")})
		}, "freeze is /body on rank 1 on "},
		"length":    {func(_ *testing.T, s *setup) { s.training = ranktest.Blobs(choose(other, 46, 41)) }, "the number of examples of the training set is 41 on rank 1 on "},
		"too short": {func(_ *testing.T, s *setup) { s.training = ranktest.Blobs(choose(other, 46, 3)) }, "the number of examples of the training set is 3 on rank 1 on "},
		"contents":  {func(_ *testing.T, s *setup) { s.training = points(choose[float32](other, 1, 2)) }, "the fingerprint of the training set is "},
		"validation": {func(_ *testing.T, s *setup) {
			s.validation = choose[data.Dataset](other, nil, ranktest.Blobs(8))
		}, "the number of examples of the validation set is 8 on rank 1 on "},
		"validation set": {func(_ *testing.T, s *setup) {
			s.options = []trainer.Option{trainer.WithValidation("night", ranktest.Blobs(choose(other, 8, 9)))}
			s.validation = ranktest.Blobs(4)
		}, "the number of examples of the validation set night is 9 on rank 1 on "},
		"model": {func(_ *testing.T, s *setup) {
			s.task = trainer.Supervised(func(scope *model.Scope, x *graph.Node) *graph.Node {
				sum := graph.ZerosLike(graph.Slice(graph.Reshape(x, x.Shape().Dimensions[0], -1), graph.AxisRange(), graph.AxisRange(0, ranktest.Classes)))
				names := []string{"a", "b", "c"}
				if other {
					slices.Reverse(names[1:])
				}
				for _, name := range names {
					sum = graph.Add(sum, layers.Dense(scope.In("head_%s", name), graph.Reshape(x, x.Shape().Dimensions[0], -1), false, ranktest.Classes))
				}
				return sum
			}, loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.1))
		}, "the first that differs is /head_c/dense/weights (Float32)[64, 4] there, and /head_b/dense/weights (Float32)[64, 4] on rank 0; they are the same in another order, such as that of a map"},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			s := setup{config: trainer.Config{Name: strings.ReplaceAll(name, " ", "-"), BatchSize: 8, Loggers: []string{"none"}}, task: sgdTask(0.1), training: ranktest.Blobs(46)}
			test.change(t, &s)
			tr, _ := newTrainer(t, s.config, s.task, s.options...)
			err := tr.Fit(t.Context(), s.training, s.validation)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("rank %d: %v, want %q", w.Rank(), err, test.want)
			}
		})
	}
	t.Run("Test", func(t *testing.T) {
		tr, _ := newTrainer(t, trainer.Config{Loggers: []string{"none"}}, sgdTask(0.1))
		if _, err := tr.Test(t.Context(), ranktest.Blobs(choose(other, 8, 9))); err == nil || !strings.Contains(err.Error(), "the number of examples of the dataset is 9 on rank 1 on ") {
			t.Errorf("rank %d: %v", w.Rank(), err)
		}
	})
}

// choose returns what rank 0 does, or the other rank.
func choose[T any](other bool, main, of1 T) T {
	if other {
		return of1
	}
	return main
}
