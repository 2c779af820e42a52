package distributed

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	xlapjrt "github.com/gomlx/go-xla/pjrt"

	"gonbatch/distributed/device"
	"gonbatch/distributed/mpi"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/watch"
	"gonbatch/internal/compilecache"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
)

// maxCPUDevices limits "all" on a CPU, where the devices only share the same cores.
const maxCPUDevices = 8

// openDevice loads the XLA plugin and opens the devices that this process computes on.
func (w *World) openDevice(ctx context.Context, c Config, numCPUs int) error {
	platform, err := choosePlatform(c.Getenv)
	if err != nil {
		return err
	}
	facts, index, err := w.checkDevices(c, platform)
	if err != nil {
		return err
	}
	devices, err := chooseDevices(c.Getenv(rundir.EnvDevices), platform, w.Size(), numCPUs)
	if err != nil {
		return err
	}
	if platform == plugin.CPU && devices > 1 {
		// XLA's all-reduce between devices of the CPU blocks a thread of the pool until every
		// device has reached it. With only as many threads as cores, the other threads may all be
		// waiting too: a deadlock, observed with 2 devices on 2 cores.
		if err := setXLAThreads(numCPUs + devices); err != nil {
			return err
		}
	}
	w.platform = platform
	if platform == plugin.CUDA {
		mpi.OnGPUs()
	}
	if err := w.loadPlugin(ctx, c); err != nil {
		return err
	}
	xla.EnableAutoInstall(false) // The plugin is installed, and a compute node may have no network.
	backend, err := w.openBackend(deviceOptions(platform, devices, index, w.processes))
	if err != nil {
		return fmt.Errorf("open the %s device of rank %d: %w", platform, w.Rank(), err)
	}
	if devices == allDevices {
		devices = backend.NumDevices()
	}
	if devices > backend.NumDevices() {
		return fmt.Errorf("%s=%d, but this process has %d %s devices: set it to that number or less, or to all", rundir.EnvDevices, devices, backend.NumDevices(), platform)
	}
	w.backend, w.devices, w.gpu = backend, devices, facts.Describe("/", devices)
	w.flexible = platform == plugin.CPU && c.Getenv(rundir.EnvDevices) == "all"
	return w.setMesh()
}

// openBackend creates XLA's client, or takes that of a closed world. If XLA connects the ranks, it
// blocks until all ranks call it.
func (w *World) openBackend(options xlapjrt.NamedValuesMap) (compute.Backend, error) {
	if w.processes == nil {
		w.openedWith = fmt.Sprint(w.platform, options)
		if backend := takeIdle(w.openedWith); backend != nil {
			return backend, nil
		}
		return xla.NewWithOptions(w.platform, options)
	}
	leave := w.watch.Enter(watch.Barrier, watch.Bytes, 0)
	backend, err := xla.NewWithOptions(w.platform, options)
	return backend, leave(err)
}

// checkDevices compares the GPUs that the ranks see, and returns a clear error if they can't work
// together. It returns what this rank sees, and the index of its own GPU.
func (w *World) checkDevices(c Config, platform string) (mine device.Facts, index int, err error) {
	lookup := c.LookupEnv
	if lookup == nil {
		lookup = func(name string) (string, bool) { value := c.Getenv(name); return value, value != "" }
	}
	mine = device.Look("/", lookup)
	mine.Rank, mine.Size, mine.LocalRank, mine.Host = w.Rank(), w.Size(), w.LocalRank(), hostname()
	mine.Platform, mine.Asked = platform, c.Getenv(rundir.EnvPlatform) != ""
	all, err := gather(w, mine)
	if err != nil {
		return mine, 0, err
	}
	warnings, err := device.Check(all)
	if w.IsMain() {
		for _, warning := range warnings {
			fmt.Fprintln(c.Log, "gonbatch: warning:", warning)
		}
	}
	if err != nil || platform != plugin.CUDA || w.Size() == 1 {
		return mine, 0, err
	}
	index, err = mine.Pick()
	return mine, index, err
}

// loadPlugin installs the plugin if it is missing (one process at a time), loads it, and registers
// the collectives with it.
func (w *World) loadPlugin(ctx context.Context, c Config) error {
	dir, err := plugin.Ensure(ctx, plugin.Options{Platform: w.platform, Progress: c.Log, Getenv: c.Getenv})
	if err != nil {
		return err
	}
	if err := pjrt.Load(w.platform, filepath.Join(dir, plugin.FileName(w.platform))); err != nil {
		return err
	}
	keepPrograms(c)
	if err := w.useKernels(ctx, c); err != nil {
		return err
	}
	if err := w.agreeOnUpdates(); err != nil {
		return err
	}
	if w.platform == plugin.CUDA && w.Size() > 1 {
		return w.joinProcesses(ctx)
	}
	transport := w.peers.Transport()
	if transport == nil {
		return nil
	}
	if err := pjrt.RegisterTransport(w.platform, pjrt.Transport(transport), w.Size()); err != nil {
		return err
	}
	return w.setOverlap(c.Getenv)
}

// keepPrograms stores compiled programs for later processes. A failure is only a warning, because
// training works without the cache.
func keepPrograms(c Config) {
	warn := func(err error) { fmt.Fprintln(c.Log, "gonbatch: warning:", err) }
	cache, err := compilecache.FromEnvironment(c.Getenv, warn)
	if err != nil {
		warn(err)
	}
	pjrt.KeepPrograms(cache)
}

func choosePlatform(getenv func(string) string) (string, error) {
	switch platform := getenv(rundir.EnvPlatform); platform {
	case plugin.CPU, plugin.CUDA:
		return platform, nil
	case "":
		if !hasGPU() {
			return plugin.CPU, nil
		}
		if _, err := plugin.Find(plugin.Options{Platform: plugin.CUDA, Getenv: getenv}); err != nil {
			return plugin.CPU, nil
		}
		return plugin.CUDA, nil
	default:
		return "", fmt.Errorf("%s=%q: it must be cpu or cuda", rundir.EnvPlatform, platform)
	}
}

func hasGPU() bool {
	found, _ := filepath.Glob("/dev/nvidia[0-9]*")
	if len(found) == 0 {
		return false
	}
	_, err := os.Stat("/dev/nvidiactl")
	return err == nil
}

// allDevices means every device there is.
const allDevices = -1

// chooseDevices returns the number of devices that this process uses. On a CPU, "all" is rounded
// down to a power of two, so that common batch sizes are divisible by it.
func chooseDevices(want, platform string, size, numCPUs int) (int, error) {
	switch {
	case want == "":
		return 1, nil
	case want == "all" && size > 1:
		return 1, nil // One device per rank.
	case want == "all" && platform == plugin.CPU:
		return powerOfTwo(min(numCPUs, maxCPUDevices)), nil
	case want == "all":
		return allDevices, nil
	}
	n, err := strconv.Atoi(want)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("%s=%q: it must be a number of at least 1, or all", rundir.EnvDevices, want)
	}
	if n > 1 && size > 1 {
		return 0, fmt.Errorf("%s=%d with %d ranks: a rank drives one device; start one rank for each device (--tasks-per-node)", rundir.EnvDevices, n, size)
	}
	return n, nil
}

// powerOfTwo returns the largest power of two that is not larger than n.
func powerOfTwo(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// deviceOptions returns the options of XLA's client. If there are several ranks on GPUs, each
// client sees only its rank's GPU.
func deviceOptions(platform string, devices, index int, processes *pjrt.Processes) xlapjrt.NamedValuesMap {
	switch {
	case platform == plugin.CPU:
		return xlapjrt.NamedValuesMap{"cpu_device_count": int64(devices)}
	case processes != nil:
		options := xlapjrt.NamedValuesMap{"visible_devices": []int64{int64(index)}}
		maps.Copy(options, processes.ClientOptions())
		return options
	}
	return nil
}
