package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed"
	"gonbatch/distributed/keyvalue"
	"gonbatch/distributed/pjrt"
	"gonbatch/internal/plugin"
)

// ranks has what a process of a check does, by the argument that asks for it.
var ranks = map[string]func(context.Context) error{"callbacks": callbacks, "sum": distributed.Check, "mock": mock}

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
	backend, err := connect(ctx, p, nil)
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

// connect creates a client with one GPU, and with further options of XLA's.
func connect(ctx context.Context, p pjrt.Processes, options xlapjrt.NamedValuesMap) (*xla.Backend, error) {
	dir, err := plugin.Ensure(ctx, plugin.Options{Platform: plugin.CUDA})
	if err != nil {
		return nil, err
	}
	if err := pjrt.Load(plugin.CUDA, filepath.Join(dir, plugin.FileName(plugin.CUDA))); err != nil {
		return nil, err
	}
	if err := pjrt.Join(plugin.CUDA, p); err != nil {
		return nil, err
	}
	xla.EnableAutoInstall(false)
	all := xlapjrt.NamedValuesMap{"visible_devices": []int64{0}}
	maps.Copy(all, p.ClientOptions())
	maps.Copy(all, options)
	return xla.NewWithOptions(plugin.CUDA, all)
}

// The world and the steps of mock. Its layer has mockWidth inputs and outputs.
const mockRanks, mockSteps, mockWidth = 8, 20, 2048

// mock takes training steps as rank 0 of eight on one GPU. XLA compiles and runs them for eight
// nodes, but skips the collectives, because the other GPUs don't exist (XLA's enable_mock_nccl). So
// the weights are meaningless.
func mock(ctx context.Context) error {
	backend, err := connect(ctx, pjrt.Processes{Size: mockRanks}, xlapjrt.NamedValuesMap{"enable_mock_nccl": true})
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

// start runs a program as this many ranks, each on a GPU of its own, and returns what rank 0
// prints.
func (b *bench) start(ctx context.Context, size int, program string, args ...string) (string, error) {
	master, err := freeAddress()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out bytes.Buffer
	errs := make([]error, size)
	var group sync.WaitGroup
	for rank := range size {
		cmd := exec.CommandContext(ctx, program, args...)
		var said bytes.Buffer
		cmd.Env, cmd.Stderr = b.environ(rank, size, master), &said
		if rank == 0 {
			cmd.Stdout = &out
		}
		group.Go(func() {
			if err := cmd.Run(); err != nil {
				errs[rank] = fmt.Errorf("rank %d of %d: %w: %s", rank, size, err, lastLines(said.String(), 3))
			}
		})
	}
	group.Wait()
	return strings.TrimSpace(out.String()), errors.Join(errs...)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "; ")
}

// short is a string for a table.
func short(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// peer runs a program in Python on the first GPU.
func (b *bench) peer(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, b.python, args...)
	cmd.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+b.first, "JAX_PLATFORMS=cuda", "WORLD_SIZE=1", "RANK=0")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, lastLines(said.String(), 1))
	}
	return strings.TrimSpace(string(out)), err
}
