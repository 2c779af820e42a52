package data

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/tensors"
)

// MixUp mixes each example with another one of ds in training runs: the first input becomes
// w·own + (1-w)·other, and so does the label, with a random w from the distribution Beta(alpha,
// alpha) (Zhang et al., mixup: Beyond Empirical Risk Minimization, 2017). alpha is more than 0 and
// at most 1; 0.2 is usual. Which example is mixed with which depends only on the seed, the epoch
// and the example's number. Each batch loads twice as many examples. The examples of a part, from
// Split or Range, are mixed only with those of the same part.
//
// The labels of ds are the numbers of classes, and become probabilities, [n, classes] float32, in
// validations and tests too. Train with loss.CategoricalCrossEntropyLogits and
// trainer.CategoricalAccuracy:
//
//	mixed := data.MixUp(data.Augment(folder, 1, data.RandomFlip(0.5)), 1, 0.2, len(folder.Classes()))
//	parts, err := data.Split(mixed, 1, 0.8, 0.2)
func MixUp(ds Dataset, seed uint64, alpha float64, classes int) Dataset {
	return wrapped{ds, mixed{seed: seed, alpha: alpha, classes: classes}}
}

type mixed struct {
	seed    uint64
	alpha   float64
	classes int
	among   *others // nil for all examples.
}

// others are the examples that may be mixed into others.
type others struct {
	n      int
	number func(i int) int
}

// narrowed is a Dataset whose examples depend on others.
type narrowed interface {
	Dataset
	// narrow returns the dataset with the same examples, of which only some are mixed into others.
	narrow(o others) Dataset
}

// narrow returns ds for a part of it: nothing of the other parts gets into its examples.
func narrow(ds Dataset, o others) Dataset {
	if n, ok := ds.(narrowed); ok {
		return n.narrow(o)
	}
	return ds
}

// other draws the number of an example of ds.
func (m mixed) other(ds Dataset, random *rand.Rand) int {
	if m.among == nil {
		return random.IntN(ds.Len())
	}
	return m.among.number(random.IntN(m.among.n))
}

func (m mixed) settings(Dataset) string {
	return fmt.Sprintf("mixed by seed %d, alpha %g, classes %d", m.seed, m.alpha, m.classes)
}

func (m mixed) batch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = m.mix(ds, epoch, indices)
	if err != nil {
		return nil, nil, fmt.Errorf("data: mix %s: %w", ds.Name(), err)
	}
	return inputs, labels, nil
}

func (m mixed) mix(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	numbers, weights := indices, make([]float32, len(indices))
	if epoch != noEpoch {
		if !(m.alpha > 0 && m.alpha <= 1) {
			return nil, nil, fmt.Errorf("alpha must be more than 0 and at most 1, got %g", m.alpha)
		}
		numbers = slices.Concat(indices, indices)
		for row, index := range indices {
			random := randomOf(mixStream, m.seed, epoch, index)
			numbers[len(indices)+row], weights[row] = m.other(ds, random), float32(beta(m.alpha, random))
		}
	}
	if inputs, labels, err = batchOf(ds, epoch, numbers); err != nil {
		return nil, nil, err
	}
	if labels, err = m.probabilities(inputs, labels, len(numbers)); err != nil || epoch == noEpoch {
		return inputs, labels, err
	}
	if inputs[0], err = mix(inputs[0], weights); err != nil {
		return nil, nil, err
	}
	labels[0], err = mix(labels[0], weights)
	return inputs, labels, err
}

// probabilities refuses examples that can't be mixed, and returns the labels as probabilities.
func (m mixed) probabilities(inputs, labels []*tensors.Tensor, n int) ([]*tensors.Tensor, error) {
	if len(inputs) != 1 || inputs[0].DType() != dtypes.Float32 {
		return nil, errors.New("it must have one input, of type float32")
	}
	if len(labels) != 1 || labels[0].DType() != dtypes.Int32 || labels[0].Size() != n {
		return nil, errors.New("it must have one label, the number of a class, [n, 1] int32")
	}
	all := make([]float32, n*m.classes)
	for row, class := range tensors.MustCopyFlatData[int32](labels[0]) {
		if class < 0 || int(class) >= m.classes {
			return nil, fmt.Errorf("there is an example of class %d, and MixUp was told of %d", class, m.classes)
		}
		all[row*m.classes+int(class)] = 1
	}
	labels[0].MustFinalizeAll()
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(all, n, m.classes)}, nil
}

// mix returns the first half of the rows of a tensor, mixed with the second half.
func mix(t *tensors.Tensor, weights []float32) (*tensors.Tensor, error) {
	defer t.MustFinalizeAll()
	n := len(weights)
	result := make([]float32, t.Size()/2)
	size := len(result) / n
	err := tensors.ConstFlatData(t, func(flat []float32) {
		for i := range result {
			w := weights[i/size]
			result[i] = w*flat[i] + (1-w)*flat[len(result)+i]
		}
	})
	return tensors.FromFlatDataAndDimensions(result, append([]int{n}, t.Shape().Dimensions[1:]...)...), err
}

// beta draws from the distribution Beta(a, a), for a up to 1 (Jöhnk, Erzeugung von betaverteilten
// und gammaverteilten Zufallszahlen, 1964). It computes with logarithms, because the powers of
// small numbers may vanish. With an even smaller a, the logarithms would not be finite.
func beta(a float64, random *rand.Rand) float64 {
	a = max(a, 1e-9)
	for {
		u, v := math.Log(1-random.Float64())/a, math.Log(1-random.Float64())/a
		largest := max(u, v)
		if sum := largest + math.Log(math.Exp(u-largest)+math.Exp(v-largest)); sum <= 0 {
			return math.Exp(u - sum)
		}
	}
}
