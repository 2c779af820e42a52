package pjrt

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	xlapjrt "github.com/gomlx/go-xla/pjrt"

	"gonbatch/internal/plugin"
)

// drawing is a program as go-xla writes it.
const drawing = `module @m {
  func.func @main(%%state: tensor<3xui64>) -> (tensor<3xui64>, %s) {
    %%0, %%1 = "stablehlo.rng_bit_generator"(%%state) { rng_algorithm = #stablehlo<rng_algorithm PHILOX> } : (tensor<3xui64>) -> (tensor<3xui64>, %[1]s)
    "stablehlo.return"(%%0, %%1) : (tensor<3xui64>, %[1]s) -> ()
  }
}
`

// TestDrawsTheSame: the bits and the next state are XLA's own, whatever the state and the shape.
func TestDrawsTheSame(t *testing.T) {
	client := newClient(t)
	random := rand.New(rand.NewPCG(rand.Uint64(), 0))
	states := [][]uint64{{0, 0, 0}, {1, 1<<64 - 1, 0}, {1 << 63, 1<<64 - 2, 1<<64 - 1}}
	for range 5 {
		states = append(states, []uint64{random.Uint64(), random.Uint64(), random.Uint64()})
	}
	for _, shape := range []string{"1xui32", "5xui32", "3x4x7xui32", "1000xui32", "1xui64", "7xui64", "33x3xui64"} {
		program := fmt.Sprintf(drawing, "tensor<"+shape+">")
		quick, n := drawQuickly(program, 0)
		if n != 1 {
			t.Fatalf("%s: %d drawings are replaced", shape, n)
		}
		theirs, ours := compiled(t, client, program), compiled(t, client, quick)
		for _, state := range states {
			if want, got := drawn(t, client, theirs, state), drawn(t, client, ours, state); !slices.EqualFunc(want, got, slices.Equal) {
				t.Errorf("%s from %d: %x, want %x", shape, state, got, want)
			}
		}
	}
}

// TestDrawsTwice: drawings of the same shape share a function.
func TestDrawsTwice(t *testing.T) {
	const twice = `module @m {
  func.func @main(%state: tensor<3xui64>) -> tensor<40xui32> {
    %0, %1 = "stablehlo.rng_bit_generator"(%state) { rng_algorithm = #stablehlo<rng_algorithm PHILOX> } : (tensor<3xui64>) -> (tensor<3xui64>, tensor<40xui32>)
    %2, %3 = "stablehlo.rng_bit_generator"(%0) { rng_algorithm = #stablehlo<rng_algorithm PHILOX> } : (tensor<3xui64>) -> (tensor<3xui64>, tensor<40xui32>)
    %4 = "stablehlo.xor"(%1, %3) : (tensor<40xui32>, tensor<40xui32>) -> tensor<40xui32>
    "stablehlo.return"(%4) : (tensor<40xui32>) -> ()
  }
}
`
	quick, n := drawQuickly(twice, 0)
	if n != 2 || strings.Count(quick, "func private @gonbatch_random") != 2 {
		t.Errorf("%d drawings are replaced, want 2 by one function and its part:\n%s", n, quick)
	}
	client := newClient(t)
	state := []uint64{1, 2, 3}
	if want, got := drawn(t, client, compiled(t, client, twice), state), drawn(t, client, compiled(t, client, quick), state); !slices.Equal(want[0], got[0]) {
		t.Errorf("the bits are %x, want %x", got[0], want[0])
	}
}

func newClient(t testing.TB) *xlapjrt.Client {
	t.Helper()
	dir, err := plugin.Ensure(context.Background(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	if err := Load("cpu", filepath.Join(dir, plugin.FileName(plugin.CPU))); err != nil {
		t.Fatal(err)
	}
	p, err := xlapjrt.GetPlugin("cpu")
	if err != nil {
		t.Fatal(err)
	}
	client, err := p.NewClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Destroy() })
	return client
}

func compiled(t testing.TB, client *xlapjrt.Client, program string) *xlapjrt.LoadedExecutable {
	t.Helper()
	exec, err := client.Compile().WithStableHLO([]byte(program)).Done()
	if err != nil {
		t.Fatalf("%v:\n%s", err, program)
	}
	return exec
}

// drawn are the bytes of the next state and of the bits.
func drawn(t testing.TB, client *xlapjrt.Client, exec *xlapjrt.LoadedExecutable, state []uint64) [][]byte {
	t.Helper()
	x, err := client.BufferFromHost().FromFlatDataWithDimensions(state, []int{3}).Done()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Execute(x).Done()
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, b := range append(out, x)[:2] {
		size, err := b.Size()
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, size)
		if err := b.ToHost(data); err != nil {
			t.Fatal(err)
		}
		all = append(all, data)
	}
	for _, b := range append(out, x) {
		if err := b.Destroy(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// dropout is a program that draws a million words, and keeps four of five elements.
const dropout = `module @m {
  func.func @main(%state: tensor<3xui64>) -> (tensor<3xui64>, tensor<1024x1024xf32>) {
    %0, %1 = "stablehlo.rng_bit_generator"(%state) { rng_algorithm = #stablehlo<rng_algorithm PHILOX> } : (tensor<3xui64>) -> (tensor<3xui64>, tensor<1024x1024xui32>)
    %2 = stablehlo.convert %1 : (tensor<1024x1024xui32>) -> tensor<1024x1024xf32>
    %3 = stablehlo.constant dense<2.328306e-10> : tensor<1024x1024xf32>
    %4 = stablehlo.multiply %2, %3 : tensor<1024x1024xf32>
    %5 = stablehlo.constant dense<0.8> : tensor<1024x1024xf32>
    %6 = stablehlo.compare LT, %4, %5 : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xi1>
    %7 = stablehlo.constant dense<0.0> : tensor<1024x1024xf32>
    %8 = stablehlo.select %6, %5, %7 : tensor<1024x1024xi1>, tensor<1024x1024xf32>
    "stablehlo.return"(%0, %8) : (tensor<3xui64>, tensor<1024x1024xf32>) -> ()
  }
}
`

// BenchmarkDropout draws as XLA does and as we do.
func BenchmarkDropout(b *testing.B) {
	client := newClient(b)
	quick, _ := drawQuickly(dropout, 0)
	state, err := client.BufferFromHost().FromFlatDataWithDimensions([]uint64{1, 2, 3}, []int{3}).Done()
	if err != nil {
		b.Fatal(err)
	}
	for _, test := range []struct{ name, program string }{{"xla", dropout}, {"quick", quick}} {
		exec := compiled(b, client, test.program)
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				out, err := exec.Execute(state).Done()
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(out[0].Destroy(), out[1].Destroy()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
