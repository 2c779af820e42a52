// Command mlp times a step of an MLP of ~100 M parameters with Adam and prints its peak RSS.
package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"sort"
	"syscall"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	world, err := distributed.Init()
	check(err)
	defer world.Close()
	net := func(s *model.Scope, x *graph.Node) *graph.Node {
		for i := range 6 {
			x = activation.Relu(layers.Dense(s.In(fmt.Sprint("h", i)), x, true, 4096))
		}
		return layers.Dense(s.In("out"), x, true, 10)
	}
	tr := train.NewTrainer(world.Backend(), model.NewStore(), net, loss.SparseCategoricalCrossEntropyLogits, world.Optimizer(optimizer.Adam().LearningRate(1e-4).Done()), nil, nil)
	x := make([]float32, 64*4096)
	for i := range x {
		x[i] = float32(i%17) / 17
	}
	y := make([]int32, 64)
	var ts []float64
	var lu, ly, lf int64
	for i := range 6 {
		if i == 2 {
			check(os.WriteFile("/proc/self/clear_refs", []byte("5"), 0))
		}
		t := time.Now()
		ms, err := tr.TrainStep(train.Batch{Inputs: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, 64, 4096)}, Labels: []*tensors.Tensor{tensors.FromFlatDataAndDimensions(y, 64, 1)}})
		check(err)
		for i, m := range ms {
			if i == 0 {
				fmt.Print(m, " ")
			}
			m.MustFinalizeAll()
		}
		if st, err := os.ReadFile("/proc/self/status"); err == nil {
			fmt.Println(i, string(regexp.MustCompile(`VmHWM:\s+\d+ kB`).Find(st)), string(regexp.MustCompile(`VmRSS:\s+\d+ kB`).Find(st)))
		}
		if i == 1 && os.Getenv("GB_GC") != "" {
			runtime.GC()
			runtime.GC()
			debug.FreeOSMemory()
		}
		ts = append(ts, time.Since(t).Seconds()*1e3)
		var ru syscall.Rusage
		syscall.Getrusage(0, &ru)
		u, y := ru.Utime.Nano()/1e6, ru.Stime.Nano()/1e6
		fmt.Printf("  wall %.0f user %d sys %d minflt %d\n", time.Since(t).Seconds()*1e3, u-lu, y-ly, ru.Minflt-lf)
		lu, ly, lf = u, y, ru.Minflt
	}
	sort.Float64s(ts)
	st, _ := os.ReadFile("/proc/self/status")
	fmt.Printf("\nmlp: %.0f ms a step (median of 6, peak after step 2), %s\n", ts[3], regexp.MustCompile(`VmHWM:\s+\d+ kB`).Find(st))
}
