// Command allreduce times all-reduces inside a compiled program, over the MPI or the TCP ring that
// connects its ranks. Each argument is a turn, BYTES:CHAIN:BLOCKS: BLOCKS runs of a program that
// sums a float32 variable of that many bytes CHAIN times over all ranks. Rank 0 prints one JSON
// line with the median time of an all-reduce of each turn:
//
//	{"micros": [2.1, 250.4], "raw_micros": [0.4, 240.2]}
//
// Over Open MPI, each run takes turns with as many calls of MPI_Allreduce in the same processes:
// raw_micros has their median times. Where the cores of a machine, or of a virtual one, are not
// equally far from one another, other processes may be several times as fast.
//
// The variable is updated in place, as in a training step, so that no other copy is in the time.
// The chain is long, so that little of the time is that of calling the program. mpirun or
// torchrun's variables start it, with each rank bound to its core. The peers in bench/peers take
// the same turns.
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
	var all result
	for _, arg := range args {
		t, err := parseTurn(arg)
		if err != nil {
			return err
		}
		if err := t.take(world, &all); err != nil {
			return fmt.Errorf("turn %s: %w", arg, err)
		}
	}
	if !world.IsMain() {
		return nil
	}
	return json.NewEncoder(os.Stdout).Encode(all)
}

// result has the median times of the turns.
type result struct {
	Micros []float64 `json:"micros"`
	Raw    []float64 `json:"raw_micros,omitempty"` // Only over Open MPI.
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

// take takes the turn, and adds the median times of an all-reduce.
func (t turn) take(world *distributed.World, all *result) error {
	if err := t.check(world); err != nil {
		return err
	}
	run, err := t.start(world)
	if err != nil {
		return err
	}
	defer run.exec.Finalize()
	if err := call(run.exec); err != nil { // With the compilation.
		return err
	}
	peer := newRaw(t.bytes)
	defer peer.free()
	var ours, raws []float64
	for range t.blocks {
		start := time.Now()
		if err := call(run.exec); err != nil {
			return err
		}
		ours = append(ours, float64(time.Since(start).Nanoseconds())/1000)
		if peer == nil {
			continue
		}
		micros, err := peer.sum(t.chain)
		if err != nil {
			return err
		}
		raws = append(raws, micros)
	}
	all.Micros = append(all.Micros, median(ours)/float64(t.chain))
	if peer != nil {
		all.Raw = append(all.Raw, median(raws)/float64(t.chain))
	}
	return nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// running is a program and its variables.
type running struct {
	store *model.Store
	exec  *model.Exec
}

// start builds the program of a turn.
func (t turn) start(world *distributed.World) (running, error) {
	store, err := t.variables(world.Rank())
	if err != nil {
		return running{}, err
	}
	exec, err := t.program(world, store)
	return running{store, exec}, err
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

// check checks the sums of one all-reduce of this size.
func (t turn) check(world *distributed.World) error {
	once, err := turn{t.bytes, 1, 1}.start(world)
	if err != nil {
		return err
	}
	defer once.exec.Finalize()
	if err := call(once.exec); err != nil {
		return err
	}
	value, err := once.store.GetVariable("/" + valuesName).Value()
	if err != nil {
		return err
	}
	wrong, want := 0, float32(world.Size()*(world.Size()+1)/2)
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
