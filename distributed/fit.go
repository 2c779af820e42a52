package distributed

import (
	"fmt"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/layerhooks"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// FitDevices reduces the devices of this process to as many as divide a batch evenly, if the batch
// doesn't fit and the number was not asked for: on a CPU, "all" devices share the same cores, and a
// notebook whose batches worked on one device must run on any machine. It says so in the run's log.
// It does nothing once a batch or a program is on the devices, on GPUs, and with several ranks.
// Loader calls it.
func (w *World) FitDevices(batchSize int) error {
	return w.fit(batchSize, fmt.Sprintf("a batch of %d", batchSize), "batches of %d")
}

// fitLanes does the same for the lanes of a stream, which devices share too.
func (w *World) fitLanes(lanes int) error {
	return w.fit(lanes, plural.Of(lanes, "lane")+" of a stream", "%d lanes")
}

// fit reduces the devices to as many as divide n, which is a number of what. more is the format of
// a number that would use them all.
func (w *World) fit(n int, what, more string) error {
	if !w.flexible || w.busy.Load() || n < 1 || n%w.devices == 0 {
		return nil
	}
	all := w.devices
	w.devices = w.fitting(n)
	w.sayOnce(fmt.Sprintf("%s can't be divided evenly over %s: using %s ("+more+" would use all)",
		what, plural.Of(all, "device"), plural.Of(w.devices, "device"), max(n/all*all, all)))
	return w.setMesh()
}

// fitting returns how many devices divide n.
func (w *World) fitting(n int) int {
	devices := w.devices
	for n%devices != 0 {
		devices /= 2 // chooseDevices took a power of two.
	}
	return devices
}

// explainBusy adds the fix to an error of a loader whose batches, or lanes, don't fit the devices
// any more.
func (w *World) explainBusy(err error, batchSize, lanes int) error {
	fits := min(w.fitting(max(batchSize, 0)), w.fitting(lanes))
	if err == nil || !w.flexible || !w.busy.Load() || fits == w.devices {
		return err
	}
	return fmt.Errorf("%w; this program already uses %s, and their number stays: set %s=%d", err, plural.Of(w.devices, "device"), rundir.EnvDevices, fits)
}

// setMesh sets the mesh for the number of devices.
func (w *World) setMesh() (err error) {
	w.mesh = nil
	layerhooks.SetConvolves(w.convolves)
	if w.devices > 1 {
		w.mesh, err = meshOf(w.devices, 1)
	}
	return err
}

// convolves reports whether the kernels compute a convolution, of which each device has a part of
// the batch.
func (w *World) convolves(c layerhooks.Convolution) bool {
	c.Batch = max(1, c.Batch/w.devices)
	return pjrt.Convolves(c)
}
