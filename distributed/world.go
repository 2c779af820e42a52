package distributed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"

	"github.com/gomlx/compute"

	"gonbatch/distributed/mpi"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/watch"
	"gonbatch/internal/cluster"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
	"gonbatch/internal/unread"
)

// World is this process's view of the job: its rank, the device it computes on, and the other
// ranks. Methods that communicate are collective: every rank must call them, in the same order.
// Only one goroutine at a time may use a World.
type World struct {
	environment cluster.Environment
	peers       communicator
	watch       *watch.Watch
	backend     compute.Backend
	cpus        cpus
	platform    string
	devices     int
	flexible    bool                 // Fewer devices will do: see FitDevices.
	busy        atomic.Bool          // The devices are in use, so their number stays.
	averages    atomic.Bool          // A program averages gradients over the ranks.
	openedWith  string               // What decides whether another world can use the same backend.
	mesh        *mesh                // With whole weights on each device; nil if there is one device.
	gpu         string               // Describes this rank's GPUs; empty if it has none.
	processes   *pjrt.Processes      // Nil unless XLA itself connects the ranks.
	run         rundir.Dir           // Zero outside a run.
	progress    *rundir.ProgressFile // Only on rank 0 in a run; else nil.
	out, log    io.Writer
	shared      variables       // Those that have got rank 0's value.
	alone       int             // The bytes from which a gradient has a bucket of its own: see buckets.
	kernels     string          // See Kernels.
	forecaster  *forecaster     // Nil unless a forecast was requested.
	said        map[string]bool // Lines of the log that are written once.
	atClose     []func() error
}

// Config is what Init takes from the process. Tests provide their own.
type Config struct {
	// Getenv reads an environment variable.
	Getenv func(string) string
	// LookupEnv distinguishes an empty environment variable from one that isn't set. If it is nil,
	// an empty variable counts as not set.
	LookupEnv func(string) (string, bool)
	// Out is where rank 0 prints its progress.
	Out io.Writer
	// Log is where every rank prints what it found.
	Log io.Writer
}

// Init joins the job that this process belongs to: it finds the other ranks, binds the process to
// its CPUs, loads XLA and opens the device. It blocks until all ranks have called it. After Close,
// a process may call it again, and continue with the same model, unless MPI or XLA connects its
// ranks.
func Init() (*World, error) {
	return InitWith(context.Background(), fromProcess())
}

// fromProcess returns the configuration of this process.
func fromProcess() Config {
	return Config{Getenv: os.Getenv, LookupEnv: os.LookupEnv, Out: os.Stdout, Log: os.Stderr}
}

// InitWith is like Init, with an explicit configuration. The context limits the installation of
// XLA's plugin and the wait for the other ranks.
func InitWith(ctx context.Context, c Config) (*World, error) {
	w, err := open(ctx, c)
	if err != nil {
		return nil, unread.Error("distributed.Init", fmt.Errorf("distributed: %w", err))
	}
	return w, nil
}

func open(ctx context.Context, c Config) (*World, error) {
	environment, err := cluster.Detect(c.Getenv)
	if err != nil {
		return nil, err
	}
	w := &World{environment: environment, out: c.Out, log: c.Log, shared: variables{}, said: map[string]bool{}}
	w.run = rundir.ReadEnv(c.Getenv).Dir
	if err := w.gather(ctx, c); err != nil {
		return nil, err
	}
	w.openProgress(c.Log)
	if w.cpus, err = bindCPUs(environment, w.peers); err != nil {
		return nil, err
	}
	if err := w.openDevice(ctx, c, len(w.cpus.list)); err != nil {
		return nil, err
	}
	w.sayCPUs()
	if err := w.pretend(ctx, c); err != nil {
		return nil, err
	}
	if w.run != (rundir.Dir{}) {
		fmt.Fprintf(c.Log, "gonbatch: %s on %s, CPUs %s, %s\n", w, hostname(), w.cpus, w.peers)
	}
	return w, nil
}

// openProgress makes rank 0 record the progress of the training, for restarts. Training works
// without it, so a failure is only a warning.
func (w *World) openProgress(log io.Writer) {
	if w.run == (rundir.Dir{}) || w.Rank() != 0 {
		return
	}
	var err error
	if w.progress, err = rundir.OpenProgress(w.run); err != nil {
		fmt.Fprintf(log, "gonbatch: warning: %v\n", err)
		return
	}
	w.atClose = append(w.atClose, w.progress.Close)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "an unnamed host"
	}
	return name
}

// sayOnce writes a line to the log of a run, unless it is empty or there already. Only rank 0 does:
// the others have the same to say.
func (w *World) sayOnce(line string) {
	if line == "" || w.said[line] || !w.IsMain() || w.run == (rundir.Dir{}) {
		return
	}
	w.said[line] = true
	fmt.Fprintln(w.log, "gonbatch:", line)
}

// warnOnce prints a warning on rank 0, unless it has done so.
func (w *World) warnOnce(line string) {
	if w.IsMain() && !w.said[line] {
		w.said[line] = true
		fmt.Fprintln(w.log, "gonbatch: warning:", line)
	}
}

// String returns a line for logs, such as "rank 0 of 2 (local rank 0), started by slurm, 1 cpu
// device".
func (w *World) String() string {
	return fmt.Sprintf("%s, %s", w.environment, plural.Of(w.devices, w.platform+" device"))
}

// Rank returns this process's number, from 0 to Size()-1.
func (w *World) Rank() int { return w.environment.Rank }

// Size returns the number of processes.
func (w *World) Size() int { return w.environment.Size }

// LocalRank returns this process's number among the processes on its node.
func (w *World) LocalRank() int { return w.environment.LocalRank }

// IsMain reports whether this is rank 0, the rank that writes files and prints. Never call a
// collective on rank 0 only.
func (w *World) IsMain() bool { return w.environment.Rank == 0 }

// Devices returns the number of devices that this process computes on.
func (w *World) Devices() int { return w.devices }

// Platform returns "cpu" or "cuda".
func (w *World) Platform() string { return w.platform }

// Backend returns the GoMLX backend to build models on.
func (w *World) Backend() compute.Backend { return w.backend }

// Printf prints on rank 0 only.
func (w *World) Printf(format string, args ...any) {
	if w.IsMain() {
		fmt.Fprintf(w.out, format, args...)
	}
}

// Barrier returns when all ranks have called it. It is collective.
func (w *World) Barrier() error { return w.peers.Barrier() }

// AllReduceSum replaces each value with its sum over all ranks. It is collective.
func (w *World) AllReduceSum(values []float64) error { return w.peers.AllReduce(values) }

// PrepareSums makes later calls of AllReduceSum with few values fast on many ranks, whose first
// ones don't pay for connections to ranks far away. The trainer calls it. It is collective.
func (w *World) PrepareSums() error {
	if p, ok := w.peers.(watched); ok {
		return p.prepareSums()
	}
	return nil
}

// OnClose registers a function that Close calls. The last one registered runs first.
func (w *World) OnClose(f func() error) { w.atClose = append(w.atClose, f) }

// Close leaves the job. Every rank must call it when its work is done. A deferred Close that runs
// because of a panic does nothing, so that the end of this process ends the others.
//
// Close notices errors of Init and of trainers that the program has not looked at: it would end as
// if the work had been done. If main itself calls Close, or defers it, rank 0 panics; elsewhere a
// caller may still look at the error, and Close only prints it. Printing or wrapping an error is a
// look, and so is errors.Is or errors.As; a comparison with nil can't be seen.
func (w *World) Close() error {
	if is, byRuntime := panicking(); is {
		if byRuntime { // The error may be the cause of a nil pointer.
			unread.Say()
		}
		return nil
	}
	var err error
	if w != nil { // Else Init has failed.
		for i := len(w.atClose) - 1; i >= 0; i-- {
			err = errors.Join(err, w.atClose[i]())
		}
		w.atClose = nil
	}
	if w != nil && !w.IsMain() || !inMain() {
		unread.Say()
	} else if lines := unread.Take(); len(lines) > 0 {
		panic(errors.New("gonbatch: " + strings.Join(lines, "; ")))
	}
	if w == nil {
		return nil
	}
	w.leaveBackend()
	closeErr := w.peers.Close()
	if errors.Is(closeErr, mpi.ErrNotFinalized) { // No other rank needs this one any more.
		fmt.Fprintf(w.log, "gonbatch: warning: %v; this rank ends without it\n", closeErr)
		closeErr = nil
	}
	return cmp.Or(err, closeErr)
}
