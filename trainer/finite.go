package trainer

import (
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"

	"gonbatch/checkpoint"
)

// checkWeights refuses a checkpoint with a NaN weight: no training run could resume from it, and it
// would replace one that can be resumed. The loss would reveal such weights only in the next batch.
func checkWeights(s *checkpoint.Snapshot) error {
	for _, name := range slices.Sorted(maps.Keys(s.Weights)) {
		if !s.Trainable[name] {
			continue // A table may mark unknown values with NaN.
		}
		found := false
		err := s.Tensors[name].ConstFlatData(func(flat any) { found = hasNaN(flat) })
		if err != nil {
			return err
		}
		if found {
			return &DivergedError{Name: "the weight " + name, Value: math.NaN(), Step: s.Step, Host: hostname()}
		}
	}
	return nil
}

func hasNaN(flat any) bool {
	switch flat := flat.(type) {
	case []float32:
		return slices.ContainsFunc(flat, func(x float32) bool { return x != x })
	case []float64:
		return slices.ContainsFunc(flat, func(x float64) bool { return x != x })
	case []bfloat16.BFloat16:
		return slices.ContainsFunc(flat, func(x bfloat16.BFloat16) bool { f := x.Float32(); return f != f })
	case []float16.Float16:
		return slices.ContainsFunc(flat, func(x float16.Float16) bool { f := x.Float32(); return f != f })
	}
	return false
}
