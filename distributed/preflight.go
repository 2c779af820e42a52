package distributed

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/distributed/device"
	"gonbatch/distributed/pjrt"
	"gonbatch/internal/plural"
)

// Place says where a rank runs and what it uses.
type Place struct {
	Rank int
	// Host is the machine, and CPUs are the CPUs that the rank computes on.
	Host, CPUs string
	// Device is what the rank computes on. Library is what it communicates through; on GPUs, NCCL
	// and what starts it.
	Device, Library string
}

// Preflight is the result of checking a job.
type Preflight struct {
	Places []Place
	// Time is how long an all-reduce of a megabyte takes, after a warm-up.
	Time time.Duration
	// Warning says what is wrong with the places, or is empty.
	Warning string
}

// Check joins the job as Init does, and finds out in seconds whether a training run would work.
// Rank 0 prints a line for each rank, with its host, CPUs, device and communication library. It
// also prints the time of an all-reduce inside a compiled program, whose sum is verified. Check
// leaves the job, so Init can't be called after it.
func Check(ctx context.Context) error {
	w, err := InitWith(ctx, fromProcess())
	if err != nil {
		return err
	}
	p, err := w.Check()
	if err == nil {
		w.Printf("%s", p)
	}
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return err
}

// Check is like the function Check, for a job that this process has already joined. It prints
// nothing. It is collective.
func (w *World) Check() (Preflight, error) {
	took, err := w.checkAllReduce()
	if err != nil {
		return Preflight{}, fmt.Errorf("distributed: preflight of rank %d on %s: %w", w.Rank(), hostname(), err)
	}
	places, err := w.places()
	return Preflight{Places: places, Time: took, Warning: w.crowdWarning()}, err
}

// places gives every rank the places of all ranks.
func (w *World) places() ([]Place, error) {
	library, err := w.library()
	if err != nil {
		return nil, err
	}
	return gather(w, Place{Rank: w.Rank(), Host: hostname(), CPUs: w.cpus.String(), Library: library, Device: w.device()})
}

// device describes what this rank computes on, such as "1 cuda device, GPU 1 (NVIDIA H100), driver
// 580.65.06, PJRT 0.116".
func (w *World) device() string {
	parts := []string{plural.Of(w.devices, w.platform+" device")}
	if w.gpu != "" {
		parts = append(parts, w.gpu)
	}
	if driver := device.Driver("/"); driver != "" && w.gpu != "" {
		parts = append(parts, "driver "+driver)
	}
	major, minor := pjrt.Version()
	return strings.Join(append(parts, fmt.Sprintf("PJRT %d.%d", major, minor)), ", ")
}

// library describes what this rank communicates through. On GPUs that includes NCCL, which XLA has
// opened by now.
func (w *World) library() (string, error) {
	library, _, _ := strings.Cut(w.peers.String(), ",") // The rest describes how it was built.
	library = strings.Join(strings.Fields(library), " ")
	if w.processes == nil {
		return library, nil
	}
	version, err := device.NCCL("/")
	if version != "" {
		library = "NCCL " + version + ", " + library
	}
	return library, err
}

// checkedElements is the number of float32 values in a megabyte.
const checkedElements = 1 << 18

// checkAllReduce compiles a program with one all-reduce and runs it twice. It returns the time of
// the second run, because the first one also opens connections.
func (w *World) checkAllReduce() (took time.Duration, err error) {
	exec, err := graph.NewExec(w.backend, func(x *graph.Node) *graph.Node {
		if w.Size() == 1 {
			return graph.AddScalar(x, 0)
		}
		return pjrt.AllReduceSum(x)
	})
	if err != nil {
		return 0, err
	}
	defer exec.Finalize()
	for range 2 {
		mine := tensors.FromScalarAndDimensions(float32(w.Rank()+1), checkedElements)
		if _, err := exec.Compile(mine.Shape()); err != nil {
			return 0, err
		}
		if err := w.Barrier(); err != nil {
			return 0, err
		}
		start := time.Now()
		sum, err := exec.Call1(mine)
		if err != nil {
			return 0, err
		}
		took = time.Since(start)
		if err := w.checkSum(sum); err != nil {
			return 0, err
		}
	}
	return took, nil
}

// checkSum verifies the sum of the ranks' numbers, each plus one.
func (w *World) checkSum(sum *tensors.Tensor) error {
	values, err := tensors.CopyFlatData[float32](sum)
	if err != nil {
		return err
	}
	want := float32(w.Size() * (w.Size() + 1) / 2)
	for i, got := range values {
		if got != want {
			return fmt.Errorf("the all-reduce over %s gives %v as element %d, want %v: the ranks' MPI, NCCL or network is broken", plural.Of(w.Size(), "rank"), got, i, want)
		}
	}
	return nil
}

// String returns the table that rank 0 prints.
func (p Preflight) String() string {
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RANK\tHOST\tCPUS\tDEVICE\tCOMMUNICATES THROUGH")
	for _, place := range p.Places {
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", place.Rank, place.Host, place.CPUs, place.Device, place.Library)
	}
	_ = table.Flush() // To memory: it can't fail.
	fmt.Fprintf(&text, "all-reduce over %s inside an XLA program: the sum is right, 1 MB in %v\n", plural.Of(len(p.Places), "rank"), p.Time.Round(10*time.Microsecond))
	if p.Warning != "" {
		fmt.Fprintln(&text, p.Warning)
	}
	return text.String()
}
