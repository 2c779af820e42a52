package distributed

import (
	"fmt"

	"gonbatch/internal/plural"
)

// FitDevices reduces the devices of this process to as many as divide a batch evenly, if the batch
// doesn't fit and the number was not asked for: on a CPU, "all" devices share the same cores, and a
// notebook whose batches worked on one device must run on any machine. It says so in the run's log.
// It does nothing once a batch or a program is on the devices, on GPUs, and with several ranks.
// Loader calls it.
func (w *World) FitDevices(batchSize int) error {
	if !w.flexible || w.busy || batchSize < 1 || batchSize%w.devices == 0 {
		return nil
	}
	all := w.devices
	for batchSize%w.devices != 0 {
		w.devices /= 2 // chooseDevices took a power of two.
	}
	low := batchSize / all * all
	w.sayOnce(fmt.Sprintf("a batch of %d can't be divided evenly over %s: using %s (batches of %d would use all)",
		batchSize, plural.Of(all, "device"), plural.Of(w.devices, "device"), max(low, all)))
	return w.setMesh()
}

// setMesh sets the mesh for the number of devices.
func (w *World) setMesh() (err error) {
	w.mesh = nil
	if w.devices > 1 {
		w.mesh, err = meshOf(w.devices)
	}
	return err
}
