package pjrt_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/mpi"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/ranktest"
	"gonbatch/plugin"
)

func pluginPath(t *testing.T) string {
	t.Helper()
	dir, err := plugin.Ensure(context.Background(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, plugin.FileName(plugin.CPU))
}

func open(t *testing.T) (*mpi.Comm, compute.Backend) {
	t.Helper()
	comm, err := mpi.Init(mpi.Candidates(os.Getenv))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { comm.Close() })
	if err := pjrt.Load("cpu", pluginPath(t)); err != nil {
		t.Fatal(err)
	}
	if err := pjrt.RegisterAllReduce("cpu", pjrt.Transport(comm.Transport())); err != nil {
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
	ranktest.Run(t, 2, func(t *testing.T) {
		comm, backend := open(t)
		for _, dtype := range []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64, dtypes.BFloat16, dtypes.Float16} {
			for _, dimensions := range [][]int{{}, {5}, {3, 4}} {
				exec := graph.MustNewExec(backend, func(x *graph.Node) *graph.Node {
					sum := pjrt.AllReduceSum(graph.ConvertDType(x, dtype))
					return graph.ConvertDType(sum, dtypes.Float32)
				})
				got := exec.MustExec1(tensors.FromScalarAndDimensions(float32(comm.Rank()+1), dimensions...))
				if want := tensors.FromScalarAndDimensions(float32(3), dimensions...); !got.Equal(want) {
					t.Errorf("%s%v: got %s, want %s", dtype, dimensions, got, want)
				}
			}
		}
	})
}

// Collectives that don't depend on each other still run in one order: each has its own value, so a mix-up would show.
func TestManyInOneProgram(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) {
		comm, backend := open(t)
		const n = 20
		exec := graph.MustNewExec(backend, func(x *graph.Node) []*graph.Node {
			sums := make([]*graph.Node, n)
			for i := range sums {
				sums[i] = pjrt.AllReduceSum(graph.MulScalar(x, float64(i)))
			}
			return sums
		})
		for range 50 {
			for i, got := range exec.MustExec(float32(comm.Rank() + 1)) {
				if got := tensors.ToScalar[float32](got); got != float32(3*i) {
					t.Fatalf("collective %d: got %v, want %d", i, got, 3*i)
				}
			}
		}
	})
}

// What MPI refuses comes back as the error of the execution, and names the rank.
func TestErrorComesBack(t *testing.T) {
	ranktest.Run(t, 2, func(t *testing.T) {
		comm, backend := open(t)
		exec := graph.MustNewExec(backend, pjrt.AllReduceSum)
		exec.MustExec1([]float32{1, 2})
		if err := comm.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := exec.Exec1([]float32{1, 2})
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
	if err := pjrt.RegisterAllReduce("cpu", nil); err == nil || !strings.Contains(err.Error(), "call Load first") {
		t.Errorf("RegisterAllReduce before Load: %v", err)
	}
}
