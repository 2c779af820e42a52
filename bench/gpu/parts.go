package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/mnist"
	"gonbatch/distributed"
	"gonbatch/distributed/keyvalue"
	"gonbatch/distributed/pjrt"
	"gonbatch/internal/plugin"
	"gonbatch/internal/plural"
)

// parts has what a process of this program's own does, by the argument that asks for it.
var parts = map[string]func(context.Context) error{
	opens: adds, "callbacks": callbacks, "sum": distributed.Check, "mock": mock,
	// Where the kit is made:
	"expected": expected, "forecasts": forecasts, "data": fetch,
}

// fetch downloads the data of the kit's notebooks, unless it is there, and prints its folder.
func fetch(ctx context.Context) error {
	_, _, err := mnist.Load(ctx)
	fmt.Println(mnist.Dir(os.Getenv))
	return err
}

// adds opens the plugin, and has the GPU add and multiply.
func adds(ctx context.Context) error {
	if err := load(ctx); err != nil {
		return err
	}
	backend, err := client()
	if err != nil {
		return err
	}
	major, minor := pjrt.Version()
	fmt.Printf("PJRT %d.%d, %s, ", major, minor, backend.Description())
	if n := backend.NumDevices(); n != 1 {
		return fmt.Errorf("XLA has %s, and not the one GPU that it was given: is this the plugin for CUDA?", plural.Of(n, "device"))
	}
	sum, err := graph.CallOnce(backend, func(x *graph.Node) *graph.Node { return graph.Add(x, x) }, []float32{1, 2, 3})
	if err != nil {
		return err
	}
	if want := tensors.FromValue([]float32{2, 4, 6}); !sum.Equal(want) {
		return fmt.Errorf("1+1, 2+2, 3+3: got %s", sum)
	}
	product, err := graph.CallOnce(backend, func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Dot(x, x).Product()) }, ones(productWidth))
	if err != nil {
		return err
	}
	if got := tensors.ToScalar[float32](product); got != productWidth*productWidth*productWidth {
		return fmt.Errorf("the sum of a product of ones of width %d: got %g", productWidth, got)
	}
	fmt.Println("adds and multiplies")
	return nil
}

// productWidth is the size of a product whose sum, its cube, float32 can hold.
const productWidth = 256

func ones(n int) [][]float32 {
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = slices.Repeat([]float32{1}, n)
	}
	return rows
}

// callbacks creates a client of one process with the key-value store of several, and has XLA
// reduce, gather and scatter each type over that one rank.
func callbacks(ctx context.Context) error {
	server, err := keyvalue.Listen(ctx, true)
	if err != nil {
		return err
	}
	defer server.Close()
	p := pjrt.Processes{Size: 1, Store: keyvalue.Dial(0, server.Place())}
	defer p.Store.Close()
	backend, err := join(ctx, p, nil)
	if err != nil {
		return err
	}
	types := []dtypes.DType{dtypes.Float32, dtypes.Float64, dtypes.Int32, dtypes.Int64, dtypes.BFloat16, dtypes.Float16}
	for _, dtype := range types {
		got, err := graph.CallOnce(backend, func(x *graph.Node) *graph.Node {
			x = pjrt.AllReduceSum(graph.ConvertDType(x, dtype))
			return graph.ConvertDType(pjrt.AllGather(pjrt.ReduceScatterSum(x)), dtypes.Float32)
		}, []float32{1, 2, 3})
		if err != nil {
			return fmt.Errorf("%s: %w", dtype, err)
		}
		if want := tensors.FromValue([]float32{1, 2, 3}); !got.Equal(want) {
			return fmt.Errorf("%s: got %s, want %s", dtype, got, want)
		}
	}
	fmt.Printf("one process, collectives of %d types\n", len(types))
	return nil
}

// sum has all GPUs add up.
func (b *bench) sum(ctx context.Context) (string, error) {
	if b.gpus == 1 {
		return "", skipped("there is one GPU")
	}
	out, err := b.start(ctx, b.gpus, b.self, partArg, "sum")
	if err == nil && !strings.Contains(out, "the sum is right") {
		err = errors.New("no sum was checked")
	}
	return lastLines(out, 1), err
}

// load loads the plugin.
func load(ctx context.Context) error {
	dir, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CUDA})
	if err != nil {
		return err
	}
	xla.EnableAutoInstall(false)
	return pjrt.Load(plugin.CUDA, filepath.Join(dir, plugin.FileName(plugin.CUDA)))
}

// client creates a client with the first GPU, and with further options of XLA's.
func client(options ...xlapjrt.NamedValuesMap) (*xla.Backend, error) {
	all := xlapjrt.NamedValuesMap{"visible_devices": []int64{0}}
	for _, o := range options {
		maps.Copy(all, o)
	}
	return xla.NewWithOptions(plugin.CUDA, all)
}

// join creates a client that is one of several processes.
func join(ctx context.Context, p pjrt.Processes, options xlapjrt.NamedValuesMap) (*xla.Backend, error) {
	if err := load(ctx); err != nil {
		return nil, err
	}
	if err := pjrt.Join(plugin.CUDA, p); err != nil {
		return nil, err
	}
	return client(p.ClientOptions(), options)
}

// The world and the steps of mock. Its layer has mockWidth inputs and outputs.
const mockRanks, mockSteps, mockWidth = 8, 20, 2048

// mock takes training steps as rank 0 of eight on one GPU. XLA compiles and runs them for eight
// nodes, but skips the collectives, because the other GPUs don't exist (XLA's enable_mock_nccl). So
// the weights are meaningless.
func mock(ctx context.Context) error {
	backend, err := join(ctx, pjrt.Processes{Size: mockRanks}, xlapjrt.NamedValuesMap{"enable_mock_nccl": true})
	if err != nil {
		return err
	}
	step, err := graph.NewExec(backend, func(weights, x *graph.Node) *graph.Node {
		error := graph.ReduceAllMean(graph.Square(graph.Dot(x, weights).Product()))
		gradient := pjrt.AllReduceMean(graph.Gradient(error, weights)[0])
		return graph.Sub(weights, graph.MulScalar(gradient, 0.1))
	})
	if err != nil {
		return err
	}
	weights, x := tensors.FromShape(shapes.Make(dtypes.Float32, mockWidth, mockWidth)), tensors.FromShape(shapes.Make(dtypes.Float32, 256, mockWidth))
	var began time.Time
	for i := range 1 + mockSteps {
		if i == 1 {
			began = time.Now()
		}
		results, err := step.Call(weights, x)
		if err != nil {
			return err
		}
		weights = results[0]
	}
	if _, err := tensors.CopyFlatData[float32](weights); err != nil { // The steps have ended.
		return err
	}
	fmt.Printf("a step of %d ranks without the network: %.3g ms\n", mockRanks, 1000*time.Since(began).Seconds()/mockSteps)
	return nil
}
