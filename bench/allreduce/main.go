// Command allreduce times all-reduces inside a compiled program, over the MPI or the TCP ring that
// connects its ranks. Each argument is a turn, BYTES:CHAIN:BLOCKS: BLOCKS runs of a program that
// sums a float32 variable of that many bytes CHAIN times over all ranks. Rank 0 prints one JSON
// line with the median time of an all-reduce of each turn:
//
//	{"version": "Open MPI v4.1.4", "micros": [2.1, 250.4]}
//
// The variable is updated in place, as in a training step, so that no other copy is in the time.
// mpirun or torchrun's variables start it, with each rank bound to its core. The peers in
// bench/peers take the same turns.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/distributed"
	"gonbatch/distributed/pjrt"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(args []string) (err error) {
	world, err := distributed.Init()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	var micros []float64
	for _, arg := range args {
		t, err := parseTurn(arg)
		if err != nil {
			return err
		}
		median, err := t.take(world)
		if err != nil {
			return fmt.Errorf("turn %s: %w", arg, err)
		}
		micros = append(micros, median)
	}
	if !world.IsMain() {
		return nil
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"version": "", "micros": micros})
}

// turn is one measurement.
type turn struct{ bytes, chain, blocks int }

func parseTurn(text string) (turn, error) {
	var numbers []int
	for _, word := range strings.Split(text, ":") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return turn{}, fmt.Errorf("turn %q: want BYTES:CHAIN:BLOCKS, three positive numbers", text)
		}
		numbers = append(numbers, n)
	}
	if len(numbers) != 3 || numbers[0]%4 != 0 {
		return turn{}, fmt.Errorf("turn %q: want BYTES:CHAIN:BLOCKS, and a multiple of 4 bytes", text)
	}
	return turn{numbers[0], numbers[1], numbers[2]}, nil
}

// take returns the median time of an all-reduce, in microseconds.
func (t turn) take(world *distributed.World) (float64, error) {
	store, err := t.variables(world.Rank())
	if err != nil {
		return 0, err
	}
	exec, err := t.program(world, store)
	if err != nil {
		return 0, err
	}
	defer exec.Finalize()
	if err := call(exec); err != nil { // With the compilation.
		return 0, err
	}
	if err := t.check(world, store); err != nil {
		return 0, err
	}
	times := make([]time.Duration, t.blocks)
	for i := range times {
		start := time.Now()
		if err := call(exec); err != nil {
			return 0, err
		}
		times[i] = time.Since(start)
	}
	slices.Sort(times)
	return float64(times[len(times)/2].Nanoseconds()) / 1000 / float64(t.chain), nil
}

// The variables of the programs. The second one changes only so that the program is like a training
// step, whose variables XLA updates in place.
const valuesName, countName = "a-values", "b-count"

// variables returns this rank's values: its number, counted from 1.
func (t turn) variables(rank int) (*model.Store, error) {
	values := make([]float32, t.bytes/4)
	for i := range values {
		values[i] = float32(rank + 1)
	}
	store := model.NewStore()
	_, err := store.CreateVariable("/"+valuesName, tensors.FromFlatDataAndDimensions(values, len(values)))
	if err == nil {
		_, err = store.CreateVariable("/"+countName, tensors.FromValue([]float32{0, 0, 0}))
	}
	return store, err
}

// program sums the values over all ranks, again and again.
func (t turn) program(world *distributed.World, store *model.Store) (*model.Exec, error) {
	return model.NewExec(world.Backend(), store, func(_ *model.Scope, one *graph.Node) *graph.Node {
		values, count := store.GetVariable("/"+valuesName), store.GetVariable("/"+countName)
		sum := values.NodeValue(one.Graph())
		for range t.chain {
			sum = pjrt.AllReduceSum(sum)
		}
		values.SetNodeValue(sum)
		count.SetNodeValue(graph.AddScalar(count.NodeValue(one.Graph()), 1))
		return graph.Identity(one)
	})
}

// call runs a program and waits until it has ended.
func call(exec *model.Exec) error {
	result, err := exec.Call1(float32(1))
	if err != nil {
		return err
	}
	return result.FinalizeAll()
}

// check checks the sums of the first block.
func (t turn) check(world *distributed.World, store *model.Store) error {
	value, err := store.GetVariable("/" + valuesName).Value()
	if err != nil {
		return err
	}
	want := float32(world.Size() * (world.Size() + 1) / 2)
	for range t.chain - 1 {
		want *= float32(world.Size()) // All ranks have the same value now.
	}
	wrong := 0
	err = tensors.ConstFlatData(value, func(sums []float32) {
		for _, got := range sums {
			if got != want {
				wrong++
			}
		}
	})
	if wrong > 0 {
		err = fmt.Errorf("%d of %d sums are not %v", wrong, t.bytes/4, want)
	}
	return err
}
