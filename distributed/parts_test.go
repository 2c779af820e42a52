package distributed_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
)

// TestParts: the parts of variables and gradients, in programs and outside.
func TestParts(t *testing.T) {
	if !ranktest.InRank() {
		for _, ranks := range []int{1, 2, 3} {
			ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI.With(" of " + string(rune('0'+ranks))), ranktest.Torchrun.With(" of " + string(rune('0'+ranks)))}, ranks, nil)
		}
		ranktest.RunWith(t, []ranktest.Launcher{ranktest.Torchrun.OnGPUs(t, 2)}, 2, nil)
		return
	}
	ranktest.RunWith(t, nil, 0, func(t *testing.T) {
		w := initWorld(t)
		cutAndJoin(t, w)
		updateParts(t, w)
		for _, limit := range []int{1, 1000} { // More collectives change nothing.
			distributed.SetBucketBytes(limit)
			updateParts(t, w)
		}
		panicInUpdate(t, w)
	})
}

// randomShapes are the same on all ranks.
func randomShapes() (all []shapes.Shape) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64} {
		for _, dimensions := range [][]int{{}, {1}, {0}, {2, 0}, {2}, {7}, {3, 4}, {1 + random.IntN(40), 1 + random.IntN(40)}, {1 + random.IntN(5000)}, {96, 512}, {257, 255}} {
			all = append(all, shapes.Make(dtype, dimensions...))
		}
	}
	return all
}

// counting is a tensor with the numbers from 1.
func counting(shape shapes.Shape) *tensors.Tensor {
	whole := tensors.FromShape(shape)
	tensors.MustMutableFlatData(whole, func(flat []float32) {
		for i := range flat {
			flat[i] = float32(i + 1)
		}
	})
	return whole
}

// cutAndJoin checks that parts are of the same length, and make the whole again.
func cutAndJoin(t *testing.T, w *distributed.World) {
	for _, shape := range append(randomShapes(), shapes.Make(dtypes.Float32, 0, 3)) {
		if shape.DType != dtypes.Float32 {
			continue
		}
		whole := counting(shape)
		part, err := w.CutPart(whole)
		if err != nil {
			t.Fatal(err)
		}
		if want := w.PartLength(shape.Size()); part.Size() != want || want*w.Size() < shape.Size() {
			t.Errorf("%s: a part of %d, want %d", shape, part.Size(), want)
		}
		joined, err := w.JoinParts(part, shape)
		if err != nil {
			t.Fatal(err)
		}
		if w.IsMain() != (joined != nil) || joined != nil && !joined.Equal(whole) {
			t.Errorf("%s: rank %d joined %v", shape, w.Rank(), joined)
		}
	}
}

// updateParts checks that variables of all sizes get the means of the gradients added, part by
// part.
func updateParts(t *testing.T, w *distributed.World) {
	store, all := model.NewStore(), randomShapes()
	name := func(i int) string { return "/v" + string(rune('a'+i)) }
	exec := model.MustNewExec(w.Backend(), store, func(scope *model.Scope, x *graph.Node) *graph.Node {
		g := x.Graph()
		var variables []*model.Variable
		var gradients []*graph.Node
		for i, shape := range all {
			v := store.VariableWithShape(name(i), shape, func(g *graph.Graph, shape shapes.Shape) *graph.Node {
				return graph.AddScalar(graph.IotaFull(g, shape), 1)
			})
			variables = append(variables, v)
			gradients = append(gradients, graph.Mul(graph.ConvertDType(x, shape.DType), v.NodeValue(g)))
		}
		parts := w.ScatterGradients(store, gradients)
		squares := graph.ScalarZero(g, dtypes.Float32)
		for _, part := range parts {
			squares = graph.Add(squares, graph.ConvertDType(graph.ReduceAllSum(graph.Square(part)), dtypes.Float32))
		}
		w.UpdateParts(store, g, variables, func() {
			i := 0
			for v := range store.IterVariables() {
				if !v.Trainable || !v.InUseByGraph(g) {
					continue
				}
				if v.Path() != name(i) || v.Shape().Size() != w.PartLength(all[i].Size()) {
					t.Errorf("variable %d is %s, of shape %s", i, v.Path(), v.Shape())
				}
				v.SetNodeValue(graph.Add(v.NodeValue(g), parts[i]))
				i++
			}
		})
		return w.SumOverRanks(squares)
	})
	mean := float64(w.Size()+1) / 2 // Of the ranks' gradients, as multiples of the variables.
	got := exec.MustCall1(float32(w.Rank() + 1))
	squares := 0.0
	for i, shape := range all {
		value := store.GetVariable(name(i)).MustValue()
		if !value.Shape().Equal(shape) {
			t.Fatalf("%s is %s, want %s", name(i), value.Shape(), shape)
		}
		for k, number := range elementsOf(t, value) {
			if want := float64(k+1) * (1 + mean); number != want {
				t.Fatalf("%s of %s: element %d is %g, want %g", name(i), shape, k, number, want)
			}
			squares += mean * mean * float64(k+1) * float64(k+1)
		}
	}
	if sum := float64(tensors.ToScalar[float32](got)); sum < 0.999*squares || sum > 1.001*squares {
		t.Errorf("the squares of all parts are %g, want %g", sum, squares)
	}
}

func elementsOf(t *testing.T, x *tensors.Tensor) (all []float64) {
	t.Helper()
	if x.DType() == dtypes.Float64 {
		return tensors.MustCopyFlatData[float64](x)
	}
	for _, value := range tensors.MustCopyFlatData[float32](x) {
		all = append(all, float64(value))
	}
	return all
}

// panicInUpdate checks that the variables are back in their places if an update panics.
func panicInUpdate(t *testing.T, w *distributed.World) {
	store := model.NewStore()
	whole := shapes.Make(dtypes.Float32, 5, 3)
	exec, err := model.NewExec(w.Backend(), store, func(scope *model.Scope, x *graph.Node) *graph.Node {
		v := store.VariableWithShape("/a/b", whole, graph.Zeros)
		w.UpdateParts(store, x.Graph(), []*model.Variable{v}, func() { panic(errors.New("an update fails")) })
		return x
	})
	if err == nil {
		_, err = exec.Call1(float32(1))
	}
	if err == nil || !strings.Contains(err.Error(), "an update fails") {
		t.Errorf("got %v", err)
	}
	var left []string
	for v := range store.IterVariables() {
		if v.Trainable {
			left = append(left, v.Path()+" "+v.Shape().String()+" "+v.Name())
		}
	}
	if want := []string{"/a/b " + whole.String() + " b"}; !slices.Equal(left, want) {
		t.Errorf("the store has %q, want %q", left, want)
	}
}
