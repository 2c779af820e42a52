// Package modelstest provides what the tests of models and layers need: the real XLA on a CPU, and
// tensors of random numbers.
//
//	out, err := model.CallOnce(modelstest.Backend(t), store, models.MNIST, modelstest.Noise(1, 5, 28, 28, 1))
package modelstest

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/plugin"
)

// openXLA opens the real XLA once. It passes the plugin's path, because go-xla reads its own search
// path before main runs.
var openXLA = sync.OnceValues(func() (compute.Backend, error) {
	dir, err := plugin.Ensure(context.Background(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		return nil, err
	}
	path, err := filepath.Abs(filepath.Join(dir, plugin.FileName(plugin.CPU)))
	if err != nil {
		return nil, err
	}
	return xla.NewWithOptions(path, pjrt.NamedValuesMap{"cpu_device_count": int64(1)})
})

// Backend returns XLA with one CPU device.
func Backend(t testing.TB) compute.Backend {
	t.Helper()
	b, err := openXLA()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Noise returns a tensor of these sizes with distinct random values from -1 to 1.
func Noise(seed uint64, size ...int) *tensors.Tensor {
	n := 1
	for _, s := range size {
		n *= s
	}
	values := make([]float32, n)
	for i, p := range rand.New(rand.NewPCG(seed, 0)).Perm(n) {
		values[i] = 2*float32(p)/float32(n) - 1
	}
	return tensors.FromFlatDataAndDimensions(values, size...)
}
