package pjrt_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/mpi"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/plugin"
)

func pluginPath(t testing.TB) string {
	t.Helper()
	dir, err := plugin.Ensure(context.Background(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, plugin.FileName(plugin.CPU))
}

func open(t testing.TB) (*mpi.Comm, compute.Backend) {
	t.Helper()
	comm, err := mpi.Init(mpi.Candidates(os.Getenv))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := comm.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	if err := pjrt.RegisterTransport("cpu", pjrt.Transport(comm.Transport()), comm.Size()); err != nil {
		t.Fatal(err)
	}
	xla.EnableAutoInstall(false)
	backend, err := xla.NewWithOptions("cpu", xlapjrt.NamedValuesMap{"cpu_device_count": int64(1)})
	if err != nil {
		t.Fatal(err)
	}
	return comm, backend
}

func TestAllReduceSum(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64, dtypes.BFloat16, dtypes.Float16} {
			for _, dimensions := range [][]int{{}, {5}, {3, 4}} {
				exec := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
					sum := pjrt.AllReduceSum(graph.ConvertDType(x, dtype))
					return graph.ConvertDType(sum, dtypes.Float32)
				})
				got := exec.MustCall1(tensors.FromScalarAndDimensions(float32(rank+1), dimensions...))
				if want := tensors.FromScalarAndDimensions(float32(3), dimensions...); !got.Equal(want) {
					t.Errorf("%s%v: got %s, want %s", dtype, dimensions, got, want)
				}
			}
		}
	})
}

// TestMean: half-precision values whose sum is too large for their type have a mean.
func TestMean(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		for _, dtype := range []dtypes.DType{dtypes.Float16, dtypes.BFloat16, dtypes.Float32, dtypes.Float64} {
			const large = float32(60000) // The largest float16 is 65504.
			exec := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
				return graph.ConvertDType(pjrt.AllReduceMean(graph.ConvertDType(x, dtype)), dtypes.Float32)
			})
			got := tensors.ToScalar[float32](exec.MustCall1(large - float32(rank)*large/2))
			if want := large * 3 / 4; !(math.Abs(float64(got-want)) <= 0.01*float64(want)) {
				t.Errorf("%s: the mean of %v and %v is %v, want %v", dtype, large, large/2, got, want)
			}
		}
	})
}

// TestRefusesPrograms: a program whose collectives would not run is refused.
func TestRefusesPrograms(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.OpenMPI}, 2, func(t *testing.T) {
		_, backend := open(t)
		sums := func(x *graph.Node) (all []*graph.Node) {
			return []*graph.Node{pjrt.AllReduceSum(x), pjrt.AllReduceMean(graph.ConvertDType(x, dtypes.Float16)), pjrt.AllReduceSum(graph.Slice(x, graph.AxisRange(0, 0)))}
		}
		run := func(backend compute.Backend) error {
			exec, err := graph.NewExec(backend, sums)
			if err == nil {
				_, err = exec.Call([]float32{1, 2})
			}
			return err
		}
		as := func(from, to string) func(string) string {
			return func(program string) string { return strings.ReplaceAll(program, from, to) }
		}
		tests := []struct {
			name   string
			change func()
			want   string
		}{
			{"another form of programs", func() { pjrt.SetForm(as("func.func", "func.of_tomorrow"), true) }, "has 1 collectives, but 0 would reach XLA"},
			{"as it is", func() { pjrt.SetForm(as("", ""), true) }, ""},
			{"another form of some", func() { pjrt.SetForm(as("over_2_0(%x: tensor", "over_2_0(%x: buffer"), false) }, "has 2 collectives, but 1 would reach XLA"},
			{"as it was", func() { pjrt.SetForm(as("", ""), false) }, ""},
			{"no transport", func() { pjrt.SetRanks(0) }, "no transport is registered"},
			{"for 3 ranks", func() { pjrt.SetRanks(3) }, "gonbatch_collective_2_over_3"},
			{"as before", func() { pjrt.SetRanks(2) }, ""},
		}
		for _, test := range tests {
			test.change()
			if err := run(backend); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q", test.name, err, test.want)
			}
		}
		other, err := gobackend.New("")
		if err != nil {
			t.Fatal(err)
		}
		if err := run(other); err == nil || !strings.Contains(err.Error(), "World.Backend()") {
			t.Errorf("on another backend: got %v", err)
		}
		if err := pjrt.RegisterTransport("cpu", nil, 5); err == nil || !strings.Contains(err.Error(), "already has collectives over 2") {
			t.Errorf("another number of ranks: got %v", err)
		}
	})
}

// TestManyInOneProgram: collectives that don't depend on each other still run in a fixed order.
// Each has its own value, which reveals a mix-up.
func TestManyInOneProgram(t *testing.T) {
	everyLowering(t, func(t *testing.T, rank int, backend compute.Backend) {
		const n = 20
		exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
			sums := make([]*graph.Node, n)
			for i := range sums {
				sums[i] = pjrt.AllReduceSum(graph.MulScalar(x, float64(i)))
			}
			return sums
		})
		for range 50 {
			for i, got := range exec.MustCall(float32(rank + 1)) {
				if got := tensors.ToScalar[float32](got); got != float32(3*i) {
					t.Fatalf("collective %d: got %v, want %d", i, got, 3*i)
				}
			}
		}
	})
}

// TestErrorComesBack: an MPI error becomes the error of the execution, and names the rank.
func TestErrorComesBack(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) {
		comm, backend := open(t)
		exec := graph.MustNewExec(backend, pjrt.AllReduceSum)
		exec.MustCall1([]float32{1, 2})
		if err := comm.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := exec.Call1([]float32{1, 2})
		if want := fmt.Sprintf("rank %d of 2: MPI is not running", comm.Rank()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	})
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct{ name, path, want string }{
		{"no file", filepath.Join(t.TempDir(), "none.so"), "none.so"},
		{"another library", "libm.so.6", "not a PJRT plugin: no symbol GetPjrtApi"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := pjrt.Load("cpu", test.path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if err := pjrt.RegisterTransport("cpu", nil, 2); err == nil || !strings.Contains(err.Error(), "call Load first") {
		t.Errorf("RegisterTransport before Load: %v", err)
	}
}
