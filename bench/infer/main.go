// Command infer times how long a network takes for batches of several sizes, from the images in
// memory to their logits in memory, and prints one JSON line:
//
//	{"version": "with oneDNN 3.2.0", "sizes": [{"batch": 1, "ms": 1.2, "cpu_ms": 1.2}]}
//
// ms is the median time of a batch, in milliseconds, and cpu_ms its processor time, which other
// work on the machine changes less. The weights are random. Its peer is bench/peers/inference.py.
package main

import (
	"encoding/json"
	"errors"
	"flag"
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
	"golang.org/x/sys/unix"

	"gonbatch/distributed"
	"gonbatch/models"
)

type options struct {
	model, sizes string
	period       time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.model, "model", "cnn", "the network: cnn or resnet18")
	flag.StringVar(&o.sizes, "sizes", "1,256", "batch sizes")
	flag.DurationVar(&o.period, "period", time.Second, "how long each size is measured")
	flag.Parse()
	if err := run(o); err != nil {
		log.Fatal(err)
	}
}

// line is what is printed.
type line struct {
	Version string `json:"version"`
	Sizes   []size `json:"sizes"`
}

// size is the time of batches of one size: the median, and the mean of the processor time.
type size struct {
	Batch  int     `json:"batch"`
	Millis float64 `json:"ms"`
	CPU    float64 `json:"cpu_ms"`
}

func run(o options) (err error) {
	world, err := distributed.Init()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	net, err := newNetwork(world, o.model)
	if err != nil {
		return err
	}
	found := line{Version: "with " + world.Kernels()}
	for text := range strings.SplitSeq(o.sizes, ",") {
		batch, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("-sizes %s: %w", o.sizes, err)
		}
		s, err := net.measure(batch, o.period)
		if err != nil {
			return fmt.Errorf("a batch of %d: %w", batch, err)
		}
		found.Sizes = append(found.Sizes, s)
	}
	return json.NewEncoder(os.Stdout).Encode(found)
}

// network is a network for predictions, and the size of its images.
type network struct {
	exec  *model.Exec
	image []int
}

func newNetwork(w *distributed.World, name string) (n network, err error) {
	net := models.MNIST
	n.image = []int{28, 28, 1}
	switch name {
	case "cnn":
	case "resnet18":
		net, n.image = models.ResNet18(10), []int{32, 32, 3}
	default:
		return n, fmt.Errorf("-model %s: want cnn or resnet18", name)
	}
	n.exec, err = model.NewExec(w.Backend(), model.NewStore(), func(scope *model.Scope, x *graph.Node) *graph.Node {
		scope.Store().SetTraining(x.Graph(), false)
		return net(scope, x)
	})
	return n, err
}

// measure times batches of a size. The first ones, for which the program is compiled, don't count.
func (n network) measure(batch int, period time.Duration) (s size, err error) {
	shape := append([]int{batch}, n.image...)
	images := make([]float32, batch*shape[1]*shape[2]*shape[3])
	for i := range images {
		images[i] = float32(i%255) / 255
	}
	var times []time.Duration
	var cpu time.Duration // When the first of them began.
	const warmUp, least = 2, 3
	began := time.Now()
	for i := 0; len(times) < least || time.Since(began) < period; i++ {
		start := time.Now()
		if err := n.answer(images, shape); err != nil {
			return s, err
		}
		if i >= warmUp {
			times = append(times, time.Since(start))
		} else {
			began, cpu = time.Now(), cpuTime()
		}
	}
	cpu = cpuTime() - cpu
	slices.Sort(times)
	return size{batch, millis(times[len(times)/2]), millis(cpu) / float64(len(times))}, nil
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// cpuTime returns the processor time that this process has used.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
		panic(err) // It fails only for a bad argument.
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// answer computes the logits of a batch.
func (n network) answer(images []float32, shape []int) error {
	x := tensors.FromFlatDataAndDimensions(images, shape...)
	logits, err := n.exec.Exec(x)
	if err != nil {
		return err
	}
	_, err = tensors.CopyFlatData[float32](logits[0]) // Wait for the device.
	return errors.Join(err, x.FinalizeAll(), logits[0].FinalizeAll())
}
