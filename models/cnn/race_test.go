package cnn

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"golang.org/x/sys/unix"
	"gonbatch/models/modelstest"
)

type variant struct {
	name string
	fn   func(in []*graph.Node) []*graph.Node
}

func race(t *testing.T, title string, gflop float64, inputs []any, variants ...variant) {
	b, err := modelstest.Backend(t), error(nil)
	if err != nil {
		t.Fatal(err)
	}
	execs := make([]*graph.Exec, len(variants))
	var ref [][]float32
	for i, v := range variants {
		execs[i], err = graph.NewExec(b, v.fn)
		if err != nil {
			t.Fatal(err)
		}
		outs, err := execs[i].Call(inputs...)
		if err != nil {
			t.Fatal(v.name, err)
		}
		for j, o := range outs {
			flat := tensors.MustCopyFlatData[float32](o)
			if i == 0 {
				ref = append(ref, flat)
				continue
			}
			worst, scale := 0.0, 0.0
			for k := range flat {
				worst = max(worst, abs(float64(flat[k]-ref[j][k])))
				scale = max(scale, abs(float64(ref[j][k])))
			}
			if worst > 1e-3*scale {
				t.Errorf("%s %s output %d: differs by %g of %g", title, v.name, j, worst, scale)
			}
		}
	}
	times := make([][]time.Duration, len(variants))
	for start := cpuTime(); cpuTime()-start < 200*time.Millisecond*time.Duration(len(variants)); {
		for i := range variants {
			s := cpuTime()
			outs, err := execs[i].Call(inputs...)
			if err != nil {
				t.Fatal(err)
			}
			times[i] = append(times[i], cpuTime()-s)
			for _, o := range outs {
				o.MustFinalizeAll()
			}
		}
	}
	line := fmt.Sprintf("%-28s", title)
	for i, v := range variants {
		slices.Sort(times[i])
		ms := float64(times[i][len(times[i])/2].Microseconds()) / 1000
		line += fmt.Sprintf("  %s %.2f", v.name, ms)
		if gflop > 0 {
			line += fmt.Sprintf(" (%.0f)", gflop/ms)
		}
	}
	fmt.Println(line)
}

func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}

func abs(x float64) float64 { return max(x, -x) }

func TestRaceConv(t *testing.T) {
	type shape struct{ n, c, o, h, k, s int }
	for _, s := range []shape{{64, 1, 32, 28, 3, 1}, {64, 32, 64, 14, 3, 1}, {32, 3, 64, 32, 3, 1}, {32, 64, 64, 32, 3, 1}, {32, 128, 128, 16, 3, 1}, {32, 256, 256, 8, 3, 1}, {32, 512, 512, 4, 3, 1},
		{32, 64, 128, 32, 3, 2}, {32, 128, 256, 16, 3, 2}, {32, 256, 512, 8, 3, 2}, {32, 64, 128, 32, 1, 2}} {
		p := (s.k - 1) / 2
		conv := func(x, w *graph.Node) convolution {
			return convolution{x: x, w: w, stride: [2]int{s.s, s.s}, padding: [2][2]int{{p, p}, {p, p}}}
		}
		ho := s.h / s.s
		x, w, v := modelstest.Noise(1, s.n, s.h, s.h, s.c), modelstest.Noise(2, s.k, s.k, s.c, s.o), modelstest.Noise(3, s.n, ho, ho, s.o)
		gf := 2 * float64(s.n*ho*ho*s.o) * float64(s.k*s.k*s.c) / 1e6
		name := fmt.Sprintf("%d->%d %d k%d s%d", s.c, s.o, s.h, s.k, s.s)
		plain := func(in []*graph.Node) *graph.Node { return conv(in[0], in[1]).plain(in[0], in[1]) }
		fwd := []variant{{"native", func(in []*graph.Node) []*graph.Node { return []*graph.Node{plain(in)} }}}
		dx := []variant{{"native", func(in []*graph.Node) []*graph.Node {
			return graph.Gradient(graph.ReduceAllSum(graph.Mul(plain(in), in[2])), in[0])
		}}}
		dw := []variant{{"native", func(in []*graph.Node) []*graph.Node {
			return graph.Gradient(graph.ReduceAllSum(graph.Mul(plain(in), in[2])), in[1])
		}}}
		one := func(f func(c convolution, v *graph.Node) *graph.Node) func(in []*graph.Node) []*graph.Node {
			return func(in []*graph.Node) []*graph.Node { return []*graph.Node{f(conv(in[0], in[1]), in[2])} }
		}
		if s.c <= 3 {
			fwd = append(fwd, variant{"taps", one(func(c convolution, v *graph.Node) *graph.Node { return c.byTaps() })})
		}
		if s.k == 1 {
			fwd = append(fwd, variant{"dot", one(func(c convolution, v *graph.Node) *graph.Node { return c.asDot() })})
			for i := range 2 {
				d := variant{"dot", func(in []*graph.Node) []*graph.Node {
					return graph.Gradient(graph.ReduceAllSum(graph.Mul(conv(in[0], in[1]).asDot(), in[2])), in[i])
				}}
				if i == 0 {
					dx = append(dx, d)
				} else {
					dw = append(dw, d)
				}
			}
		}
		if s.k == 3 && s.s == 1 && s.c > 3 {
			fwd = append(fwd, variant{"wino", one(func(c convolution, v *graph.Node) *graph.Node { return winograd(c.x, c.w, 1) })})
			dx = append(dx, variant{"wino", one(func(c convolution, v *graph.Node) *graph.Node { return winogradByImage(c.w, v, 1) })})
			dw = append(dw, variant{"wino", one(func(c convolution, v *graph.Node) *graph.Node { return winogradByKernel(c.x, v, 1) })})
		}
		if s.k == 3 {
			fwd = append(fwd, variant{"patches", one(func(c convolution, v *graph.Node) *graph.Node { return c.byPatches() })})
			dw = append(dw, variant{"patches", one(func(c convolution, v *graph.Node) *graph.Node { return c.kernelByPatches(v) })})
			dw = append(dw, variant{"patchesT", one(func(c convolution, v *graph.Node) *graph.Node { return c.kernelByPatchesT(v) })})
			dw = append(dw, variant{"shifts", one(func(c convolution, v *graph.Node) *graph.Node { return c.kernelByShifts(v) })})
		}
		if s.k == 3 && s.s == 2 {
			dx = append(dx, variant{"phases", one(func(c convolution, v *graph.Node) *graph.Node { return c.imageByPhases(v) })})
			dx = append(dx, variant{"col2im", one(func(c convolution, v *graph.Node) *graph.Node { return c.imageByColumns(v) })})
		}
		in := []any{x, w, v}
		race(t, name+" fwd", gf, in, fwd...)
		if s.c > 3 {
			race(t, name+" dx", gf, in, dx...)
		}
		race(t, name+" dw", gf, in, dw...)
	}
}
