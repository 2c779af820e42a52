package trainer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/checkpoint"
	"gonbatch/internal/unread"
	"gonbatch/trainer/internal/step"
)

// LoadAverage gives the model the exponential moving averages of its weights, which Fit computes
// with Config.EMADecay. Test, Validate and Predict use them from then on. Call it after Fit or, in
// a program that only tests or predicts, instead of Fit: then they are those of the newest
// checkpoint. It is collective.
//
// The trainer can't train afterwards: Fit returns an error.
func (t *Trainer) LoadAverage() (err error) {
	defer func() { err = unread.Error("trainer.LoadAverage", err) }()
	if err = t.checkAverage(); err == nil {
		err = t.load()
	}
	if err == nil {
		err = t.useAverage()
	}
	if err != nil {
		return fmt.Errorf("trainer: %s: load the average of the weights: %w", t.config.Name, placed(err))
	}
	return nil
}

func (t *Trainer) checkAverage() error {
	switch {
	case t.config.EMADecay == 0:
		return errors.New("ema_decay is not set, so there is none")
	case t.life == fitting && !t.at.Finished:
		return errors.New("Fit is training now: call LoadAverage after it, or in a callback's FitEnd")
	case t.loaded != "":
		return fmt.Errorf("the model already has the weights of %s", t.loaded)
	}
	return nil
}

// useAverage replaces the weights with their averages: those of the store or, before a graph has
// asked for them, of the checkpoint.
func (t *Trainer) useAverage() error {
	now, err := checkpoint.Take(t.store, t.step.IsWeight)
	if err != nil {
		return err
	}
	averages := now.Tensors
	if averages[step.AverageCount] == nil && t.snapshot != nil {
		averages = t.snapshot.Tensors
	}
	s := &checkpoint.Snapshot{Path: "the average", Tensors: map[string]*tensors.Tensor{}, Weights: map[string]bool{}}
	for name, average := range averages {
		if !step.Under(name, step.AverageScope) || name == step.AverageCount {
			continue
		}
		weight := strings.TrimPrefix(name, step.AverageScope)
		s.Weights[weight] = true
		if s.Tensors[weight], err = narrowedAverage(average, averages[weight].DType()); err != nil {
			return fmt.Errorf("%s: %w", weight, err)
		}
	}
	if len(s.Tensors) == 0 {
		return errors.New("there is none yet: call Fit first, or set checkpoint.dir to the folder of a training run with ema_decay")
	}
	if err := s.RestoreWeights(t.store, func(string) bool { return true }); err != nil {
		return err
	}
	t.said, t.loaded = true, "LoadAverage"
	t.printf("%s: the weights are averages over the training\n", t.config.Name)
	return nil
}

// narrowedAverage returns an average in the type of its weight. The averages of weights in BFloat16
// have single precision.
func narrowedAverage(average *tensors.Tensor, dtype dtypes.DType) (*tensors.Tensor, error) {
	if average.DType() == dtype {
		return average, nil
	}
	if average.Shape().IsZeroSize() {
		return tensors.FromShape(shapes.Make(dtype, average.Shape().Dimensions...)), nil
	}
	var narrow []bfloat16.BFloat16
	err := tensors.ConstFlatData(average, func(wide []float32) { narrow = xslices.Map(wide, bfloat16.FromFloat32) })
	if err != nil {
		return nil, err
	}
	return tensors.FromFlatDataAndDimensions(narrow, average.Shape().Dimensions...), nil
}

// matchAverages lets a training run begin with averages, or end them, at a checkpoint: if ema_decay
// is not set, it drops those of the checkpoint, which the next update would make wrong.
func (t *Trainer) matchAverages(s *checkpoint.Snapshot) {
	switch has := s.Tensors[step.AverageCount] != nil; {
	case !has && t.config.EMADecay > 0:
		t.added = append(t.added, step.AverageScope)
	case has && t.config.EMADecay == 0:
		t.dropped = true
		maps.DeleteFunc(s.Tensors, func(name string, _ *tensors.Tensor) bool { return step.Under(name, step.AverageScope) })
	}
}

// sayAverages prints that a training run that resumes begins with averages, or ends them.
func (t *Trainer) sayAverages() {
	switch {
	case slices.Contains(t.added, step.AverageScope):
		t.printf("the checkpoint has no averages of the weights (ema_decay): they begin after the next update\n")
	case t.dropped:
		t.printf("ema_decay is not set: the training continues without the checkpoint's averages of the weights\n")
	}
}

// matchLossScale lets a training run begin or end in 16-mixed at a checkpoint.
func (t *Trainer) matchLossScale(s *checkpoint.Snapshot) {
	has, scales := s.Tensors[step.ScalePath] != nil, t.step.ScalesLoss()
	if !has && scales {
		t.added = append(t.added, step.ScaleScope)
	}
	if has && !scales {
		maps.DeleteFunc(s.Tensors, func(name string, _ *tensors.Tensor) bool { return step.Under(name, step.ScaleScope) })
	}
}
