package data_test

import (
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// TestTensors reads random batches, several at once, of tensors of several types and shapes.
func TestTensors(t *testing.T) {
	const n = 50
	numbers := make([]float32, n*6)
	for i := range numbers {
		numbers[i] = float32(i)
	}
	words, flags := make([]int64, n), make([]bool, n*2)
	for i := range n {
		words[i], flags[2*i+1] = int64(-i), i%3 == 0
	}
	inputs := []*tensors.Tensor{tensors.FromFlatDataAndDimensions(numbers, n, 2, 3), tensors.FromFlatDataAndDimensions(flags, n, 2)}
	labels := []*tensors.Tensor{tensors.FromFlatDataAndDimensions(words, n), tensors.FromShape(shapes.Make(dtypes.Float64, n, 0))}
	ds, err := data.Tensors("mixed", inputs, labels)
	if err != nil {
		t.Fatal(err)
	}
	if ds.Name() != "mixed" || ds.Len() != n {
		t.Errorf("%s has %d examples", ds.Name(), ds.Len())
	}
	var group sync.WaitGroup
	for seed := range uint64(20) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			indices := make([]int, 1+random.IntN(2*n))
			for i := range indices {
				indices[i] = random.IntN(n)
			}
			x, y, err := ds.Batch(indices)
			if err != nil {
				t.Error(err)
				return
			}
			checkShapes(t, len(indices), x, y)
			some, two, word := tensors.MustCopyFlatData[float32](x[0]), tensors.MustCopyFlatData[bool](x[1]), tensors.MustCopyFlatData[int64](y[0])
			for row, index := range indices {
				for i := range 6 {
					if some[row*6+i] != float32(index*6+i) {
						t.Errorf("number %d of example %d is %g", i, index, some[row*6+i])
					}
				}
				if two[row*2] || two[row*2+1] != (index%3 == 0) || word[row] != int64(-index) {
					t.Errorf("example %d has %v and the label %d", index, two[row*2:row*2+2], word[row])
				}
			}
		})
	}
	group.Wait()
}

// checkShapes checks the shapes of a batch of n examples.
func checkShapes(t *testing.T, n int, x, y []*tensors.Tensor) {
	t.Helper()
	if len(x) != 2 || len(y) != 2 || !x[0].Shape().Equal(shapes.Make(dtypes.Float32, n, 2, 3)) || !x[1].Shape().Equal(shapes.Make(dtypes.Bool, n, 2)) ||
		!y[0].Shape().Equal(shapes.Make(dtypes.Int64, n)) || !y[1].Shape().Equal(shapes.Make(dtypes.Float64, n, 0)) {
		t.Errorf("a batch of %d examples is %v, %v", n, x, y)
	}
}

func TestTensorsRefuses(t *testing.T) {
	ten := tensors.FromShape(shapes.Make(dtypes.Float32, 10, 2))
	freed := tensors.FromValue([]float32{1, 2})
	if err := freed.FinalizeAll(); err != nil {
		t.Fatal(err)
	}
	one := func(t *tensors.Tensor) []*tensors.Tensor { return []*tensors.Tensor{t} }
	tests := []struct {
		name, want     string
		inputs, labels []*tensors.Tensor
	}{
		{name: "no inputs", want: "x: no inputs", labels: one(ten)},
		{name: "nil", want: "x: input 0 is nil", inputs: one(nil)},
		{name: "freed", want: "x: label 0 has been freed", inputs: one(ten), labels: one(freed)},
		{name: "a scalar", want: "x: input 0 is a scalar, (Float32): its first axis must be the example", inputs: one(tensors.FromValue(float32(1)))},
		{name: "no rows", want: "x: input 0 is (Float32)[0, 3], which has no rows", inputs: one(tensors.FromShape(shapes.Make(dtypes.Float32, 0, 3)))},
		{name: "other labels", want: "x: label 0 is (Int32)[9], with 9 rows; the first input has 10", inputs: one(ten), labels: one(tensors.FromShape(shapes.Make(dtypes.Int32, 9)))},
		{name: "half bytes", want: "x: input 1 is (Int4)[10, 2]: rows with elements smaller than a byte", inputs: append(one(ten), tensors.FromShape(shapes.Make(dtypes.Int4, 10, 2)))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := data.Tensors("x", tt.inputs, tt.labels); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	ds, err := data.Tensors("x", one(ten), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, indices := range [][]int{nil, {-1}, {10}} {
		if _, _, err := ds.Batch(indices); err == nil || !strings.Contains(err.Error(), "x: ") {
			t.Errorf("examples %v: %v", indices, err)
		}
	}
	if _, labels, err := ds.Batch([]int{3}); err != nil || len(labels) != 0 {
		t.Errorf("%v, %v", labels, err)
	}
}

// TestTensorsOfTheCaller: the caller may use its slices again, but must not free the tensors.
func TestTensorsOfTheCaller(t *testing.T) {
	inputs := []*tensors.Tensor{tensors.FromValue([]float32{1, 2, 3})}
	labels := []*tensors.Tensor{tensors.FromValue([]int32{0, 1, 0})}
	first := inputs[0]
	ds, err := data.Tensors("first", inputs, labels)
	if err != nil {
		t.Fatal(err)
	}
	inputs[0], labels[0] = tensors.FromValue([]float32{7}), tensors.FromValue([]int32{9})
	x, y, err := ds.Batch([]int{2})
	if err != nil || !x[0].Equal(tensors.FromValue([]float32{3})) || !y[0].Equal(tensors.FromValue([]int32{0})) {
		t.Errorf("got %v, %v, %v: want row 2 of the dataset's tensors", x, y, err)
	}
	first.MustFinalizeAll()
	if _, _, err := ds.Batch([]int{0}); err == nil || err.Error() != "first: input 0 has been freed since the dataset was made" {
		t.Errorf("got %v", err)
	}
}
