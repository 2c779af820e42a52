// Command step times the training step of a network on random inputs. Rank 0 prints one JSON line:
//
//	{"images_per_second": 4200, "ms_per_step": 30.4, "cpu_ms_per_step": 30.1, "peak_mb": 410,
//	 "first_step_at": 1795523696.21, "version": "with oneDNN 3.2.0", "ranks": 2, "devices": 1,
//	 "batch": 64}
//
// ms_per_step and cpu_ms_per_step (processor time) are medians; first_step_at is when the first
// step was done, in seconds since 1970; peak_mb is the most memory that the process used, and
// buffers_peak_bytes the most that large blocks of XLA's used during the timed steps. On GPUs,
// device_peak_bytes is the most memory of the GPU that it used, and device_limit_bytes what it may
// use. compiled is how many programs it compiled, and compile_seconds how long it waited for
// compiled programs. losses, with -losses, are those of all steps, the warm-up's included.
//
// mpirun starts it, with each rank bound to its cores. The peers in bench/peers do the same in
// Python.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"golang.org/x/sys/unix"

	"gonbatch/distributed"
	"gonbatch/distributed/memory"
	"gonbatch/distributed/pjrt"
)

type options struct {
	model                string
	batch, steps, warmUp int
	bucket               int
	products, zero1      bool
	profile, losses      bool
}

func main() {
	var o options
	flag.StringVar(&o.model, "model", "cnn", "the network: cnn, resnet18, mlp or gpt")
	flag.IntVar(&o.batch, "batch", 64, "inputs in a step, for each rank")
	flag.IntVar(&o.steps, "steps", 100, "steps to time")
	flag.IntVar(&o.warmUp, "warm-up", 5, "steps before, with the compilation")
	flag.IntVar(&o.bucket, "bucket", 0, "bytes of gradients that travel together, where they do while others are computed (0: the default)")
	flag.BoolVar(&o.products, "products", false, "time only the products of matrices of a step, each by itself")
	flag.BoolVar(&o.profile, "profile", false, "write to stderr what the custom calls take in a step")
	flag.BoolVar(&o.zero1, "zero1", false, "divide the optimizer's state among the ranks")
	flag.BoolVar(&o.losses, "losses", false, "also print the losses of all steps")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

func run(o options) (err error) {
	if min(o.batch, o.steps, o.warmUp) < 1 {
		return fmt.Errorf("-batch %d -steps %d -warm-up %d: each must be at least 1", o.batch, o.steps, o.warmUp)
	}
	if o.bucket < 0 {
		return fmt.Errorf("-bucket %d: want a number of bytes, or 0 for the default", o.bucket)
	}
	pjrt.SetSplitBytes(o.bucket)
	task, err := newTask(o.model)
	if err != nil {
		return err
	}
	world, err := distributed.Init()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	if o.products {
		return reportProducts(world, o)
	}
	optimizer, err := task.optimizerFor(world, o.zero1)
	if err != nil {
		return err
	}
	store := model.NewStore()
	if err := store.SetRNGStateFromSeed(1); err != nil {
		return err
	}
	trainer := train.NewTrainer(world.Backend(), store, task.network, task.loss, optimizer, nil, nil)
	data := task.inputs(o.batch, rand.New(rand.NewPCG(1, uint64(world.Rank()))))
	var c clock
	var losses []float32
	for metrics, err := range steps(world, trainer, data, o.warmUp+o.steps) {
		if err != nil {
			return fmt.Errorf("step %d: %w", len(c.ends), err)
		}
		if o.losses {
			losses = append(losses, tensors.ToScalar[float32](metrics[0]))
		}
		for _, m := range metrics {
			m.MustFinalizeAll() // It waits until the step is done.
		}
		if c.tick(); len(c.ends) == o.warmUp {
			memory.Peak() // What comes next is a peak of steps, without that of compiling.
			if o.profile {
				pjrt.StartTrace(mostOperations)
			}
		}
	}
	if o.profile && world.IsMain() {
		operations, _ := pjrt.StopTrace()
		writeProfile(os.Stderr, operations, o.steps, c.ends[len(c.ends)-1].Sub(c.ends[o.warmUp-1])/time.Duration(o.steps))
	}
	if !world.IsMain() {
		return nil
	}
	line := c.figures(o.warmUp)
	line["images_per_second"] = float64(o.batch*world.Size()) * 1000 / line["ms_per_step"].(float64)
	if peak, limit, ok := pjrt.Memory(); ok {
		line["device_peak_bytes"], line["device_limit_bytes"] = peak, limit
	}
	line["buffers_peak_bytes"] = memory.Peak()
	line["compiled"] = pjrt.Compilations()
	line["compile_seconds"] = pjrt.CompileTime().Seconds()
	line["version"] = "with " + world.Kernels()
	if o.losses {
		line["losses"] = losses
	}
	line["ranks"], line["devices"], line["batch"] = world.Size(), world.Devices(), o.batch
	return json.NewEncoder(os.Stdout).Encode(line)
}

// reportProducts prints what a step without anything else would take.
func reportProducts(world *distributed.World, o options) error {
	took, err := timeProducts(world.Backend(), o.model, o.batch)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"ms_per_step": float64(took.Microseconds()) / 1000, "images_per_second": float64(o.batch) / took.Seconds(), "version": "with " + world.Kernels(),
	})
}

// clock records when steps ended, and the processor time by then.
type clock struct {
	ends []time.Time
	cpu  []time.Duration
}

func (c *clock) tick() {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err) // It fails only for a bad argument.
	}
	c.ends = append(c.ends, time.Now())
	c.cpu = append(c.cpu, time.Duration(usage.Utime.Nano()+usage.Stime.Nano()))
}

// figures returns the medians of the steps after the warm-up, and the values of the process.
func (c *clock) figures(warmUp int) map[string]any {
	var wall, cpu []time.Duration
	for i := warmUp; i < len(c.ends); i++ {
		wall = append(wall, c.ends[i].Sub(c.ends[i-1]))
		cpu = append(cpu, c.cpu[i]-c.cpu[i-1])
	}
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return map[string]any{
		"ms_per_step":     medianMillis(wall),
		"cpu_ms_per_step": medianMillis(cpu),
		"first_step_at":   float64(c.ends[0].UnixMilli()) / 1000,
		"peak_mb":         float64(usage.Maxrss) / 1024,
	}
}

func medianMillis(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}
