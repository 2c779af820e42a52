package distributed

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gonbatch/distributed/onednn"
	"gonbatch/distributed/pjrt"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
)

// useKernels lets oneDNN compute what it computes faster than XLA, with as many threads as this
// rank has CPUs. If it is not installed, XLA computes everything. A library that the user names
// must open; the run's own, which submit found on another machine, may be missing something here.
func (w *World) useKernels(ctx context.Context, c Config) error {
	w.kernels = "XLA"
	if w.platform != plugin.CPU {
		return nil
	}
	if err := pjrt.RegisterGenerator(w.platform); err != nil {
		return err
	}
	candidates, own := w.oneDNNs(c.Getenv)
	if len(candidates) == 0 {
		w.sayOnce("XLA computes everything: " + rundir.EnvOneDNN + "=" + rundir.OneDNNOff)
		return nil
	}
	if !w.ownsCPUs() {
		onednn.SleepWhileWaiting()
	}
	library, err := w.openOneDNN(ctx, c, candidates)
	if err == nil {
		return w.registerKernels(library)
	}
	why, _, _ := strings.Cut(err.Error(), "\n") // The rest says what to set.
	switch {
	case own:
		fmt.Fprintf(c.Log, "gonbatch: warning: rank %d on %s computes without the oneDNN of this run, and takes longer: %s\n", w.Rank(), hostname(), why)
		return nil
	case c.Getenv(rundir.EnvOneDNN) != "":
		return err
	case len(candidates) > 1:
		fmt.Fprintf(c.Log, "gonbatch: warning: XLA computes everything: %s\n", why)
		return nil
	}
	w.sayOnce("XLA computes everything: oneDNN is not installed")
	return nil
}

// agreeOnUpdates leaves the updates of variables to XLA on all ranks if one rank has no kernels:
// the two round differently, and the weights of all ranks must stay the same. It is collective.
func (w *World) agreeOnUpdates() error {
	if w.platform != plugin.CPU || w.Size() == 1 {
		return nil
	}
	all, err := gather(w, w.kernels == "XLA")
	if err == nil && slices.Contains(all, true) {
		pjrt.WithoutAdam()
	}
	return err
}

// registerKernels makes the programs of this rank call the library.
func (w *World) registerKernels(library *onednn.Library) error {
	library.LimitThreads(len(w.cpus.list))
	w.kernels = "oneDNN " + library.Version()
	w.sayOnce(fmt.Sprintf("%s computes convolutions and large products of float32 (%s)", w.kernels, library.Path()))
	return pjrt.RegisterKernels(w.platform, pjrt.Kernels{Convolution: library.Convolution(), Product: library.Product(), Columns: library.Columns(), Adam: library.Adam(), TrainedProduct: library.TrainedProduct()})
}

// openOneDNN opens one of the libraries. If none can be opened and this process is on its own, as
// in a notebook, it installs one. In a run, submit has tried that on its machine, and the nodes may
// have no network.
func (w *World) openOneDNN(ctx context.Context, c Config, candidates []string) (*onednn.Library, error) {
	library, err := onednn.Open(candidates)
	if err == nil || w.Size() > 1 || w.run != (rundir.Dir{}) || c.Getenv(rundir.EnvOneDNN) != "" {
		return library, err
	}
	path, installErr := plugin.EnsureOneDNN(ctx, plugin.Options{Progress: c.Log, Getenv: c.Getenv})
	if installErr != nil {
		fmt.Fprintf(c.Log, "gonbatch: warning: %v; until then, training on CPUs takes longer\n", installErr)
	}
	if path != "" && !slices.Contains(candidates, path) {
		return onednn.Open([]string{path})
	}
	return nil, err
}

// ownsCPUs reports whether nothing else computes on this rank's CPUs: a batch system gave them to
// the job, and the rank is bound to them.
func (w *World) ownsCPUs() bool { return w.environment.JobID != "" && w.cpus.bound }

// oneDNNs lists the libraries to try, and reports whether the first one is the run's own. If that
// one can't be opened, the node's may be. The one that gonbatch has installed comes last.
func (w *World) oneDNNs(getenv func(string) string) (candidates []string, own bool) {
	candidates = onednn.Candidates(getenv)
	if getenv(rundir.EnvOneDNN) == "" {
		if path := plugin.FindOneDNN(plugin.Options{Getenv: getenv}); path != "" {
			candidates = append(candidates, path)
		}
	}
	path := getenv(rundir.EnvOneDNN)
	if w.run == (rundir.Dir{}) || path != w.run.OneDNN() {
		return candidates, false
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // Used in place, it finds its own libraries next to it.
	}
	return append([]string{path}, onednn.Candidates(func(string) string { return "" })...), true
}

// Kernels returns what computes convolutions and large products on this rank: "XLA", or a library
// with its version, such as "oneDNN 3.2.0".
func (w *World) Kernels() string { return w.kernels }
