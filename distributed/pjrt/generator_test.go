package pjrt_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/pjrt"
)

// draw draws random numbers of a shape. It returns the next state and the numbers.
type draw func(state *graph.Node, dims ...int) (next, values *graph.Node)

// draws show all bits of the generator but the highest.
var draws = map[string]draw{
	"32 bits": func(state *graph.Node, dims ...int) (next, values *graph.Node) {
		return graph.RandomIntN(state, uint32(1<<31), shapes.Make(dtypes.Uint32, dims...))
	},
	"64 bits": func(state *graph.Node, dims ...int) (next, values *graph.Node) {
		return graph.RandomIntN(state, uint64(1<<63), shapes.Make(dtypes.Uint64, dims...))
	},
	"float32": func(state *graph.Node, dims ...int) (next, values *graph.Node) {
		return graph.RandomUniform(state, shapes.Make(dtypes.Float32, dims...))
	},
	"normal": func(state *graph.Node, dims ...int) (next, values *graph.Node) {
		return graph.RandomNormal(state, shapes.Make(dtypes.Float64, dims...))
	},
}

// generatorBackend is what openGenerator has opened, which a process can do only once.
var generatorBackend compute.Backend

// openGenerator opens the CPU, whose programs generate random bits by our function.
func openGenerator(t testing.TB) compute.Backend {
	t.Helper()
	if generatorBackend != nil {
		pjrt.SetGenerator(true)
		return generatorBackend
	}
	_, backend := open(t)
	generatorBackend = backend
	if err := pjrt.RegisterGenerator("cpu"); err != nil {
		t.Fatal(err)
	}
	return backend
}

// run runs a drawing with the generator on or off.
func run(t *testing.T, backend compute.Backend, on bool, d draw, dims []int, state *tensors.Tensor) (next, values *tensors.Tensor) {
	t.Helper()
	var program string
	defer pjrt.SetShare(func(text string) (string, int) { program = text; return text, 0 })()
	pjrt.SetGenerator(on)
	exec := graph.MustNewExec(backend, func(state *graph.Node) []*graph.Node {
		next, values := d(state, dims...)
		return []*graph.Node{next, values}
	})
	outs, err := exec.Call(state)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	if on {
		want = strings.Count(program, "stablehlo.rng_bit_generator")
	}
	if _, n := pjrt.UseGenerator(program); n != want || on && want == 0 {
		t.Fatalf("replaces %d statements of %d in\n%s", n, want, program)
	}
	return outs[0], outs[1]
}

// TestGenerator: the generator's bits are XLA's own, for all sizes, and where the counter carries.
func TestGenerator(t *testing.T) {
	backend := openGenerator(t)
	random := rand.New(rand.NewPCG(1, 2))
	states := [][]uint64{{0, 0, 0}, {math.MaxUint64, math.MaxUint64, math.MaxUint64}, {1, math.MaxUint64 - 20, 7}}
	for range 5 {
		states = append(states, []uint64{random.Uint64(), random.Uint64(), random.Uint64()})
	}
	for name, d := range draws {
		for i, state := range states {
			dims := [][]int{{}, {1}, {127}, {128}, {129}, {3, 5, 7}, {1 + random.IntN(5000)}, {64, 1000}}[i]
			t.Run(fmt.Sprintf("%s %v", name, dims), func(t *testing.T) {
				next, values := run(t, backend, false, d, dims, tensors.FromValue(state))
				ourNext, ours := run(t, backend, true, d, dims, tensors.FromValue(state))
				if !ourNext.Equal(next) {
					t.Errorf("the next state is %s, want %s", ourNext, next)
				}
				if !ours.Equal(values) {
					t.Errorf("got %s, want %s", ours, values)
				}
			})
		}
	}
}

// BenchmarkGenerator draws a million numbers, by XLA and by our function.
func BenchmarkGenerator(b *testing.B) {
	backend := openGenerator(b)
	state := tensors.FromValue([]uint64{1, 2, 3})
	for name, on := range map[string]bool{"XLA": false, "ours": true} {
		pjrt.SetGenerator(on)
		exec := graph.MustNewExec(backend, func(state *graph.Node) *graph.Node {
			_, values := graph.RandomUniform(state, shapes.Make(dtypes.Float32, 1<<20))
			return graph.ReduceAllSum(values)
		})
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = exec.MustCall(state)[0].Value()
			}
		})
	}
}
