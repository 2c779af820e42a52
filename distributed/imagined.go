package distributed

import (
	"fmt"

	"gonbatch/distributed/pjrt"
	"gonbatch/internal/forecast"
	"gonbatch/internal/plural"
)

// In a forecast of divided weights, this process imagines to drive all GPUs of a node itself, as
// the job's only rank does. It has as many devices of the CPU, for which it divides the variables.
// Their initial values are computed there, and the step is compiled for the GPUs.

// imagineDevices makes the only process of a job of this rank of a forecast, unless it is already.
func (w *World) imagineDevices(n int) error {
	world := w.forecaster.question.World
	switch {
	case world.Nodes > 1:
		return fmt.Errorf("each weight in %s, but the forecast is for %s: XLA divides weights only among the GPUs of one process: give --nodes=1", plural.Of(n, "part"), world)
	case world.GPUsPerNode%n != 0:
		return fmt.Errorf("each weight in %s, but the forecast is for %s: their number must be a multiple of %d: change one of them (submit check --gpus-per-node)", plural.Of(n, "part"), world, n)
	}
	w.forecaster.rows = n
	if w.forecaster.divides {
		return nil
	}
	if err := w.openImagined(world); err != nil {
		return fmt.Errorf("imagine %s: %w", plural.Of(world.GPUsPerNode, "GPU"), err)
	}
	w.forecaster.divides = true
	fmt.Fprintf(w.forecaster.log, "gonbatch: the forecast is for one process with %s, which submit starts with --tasks-per-node=1 --devices=all\n", plural.Of(world.GPUsPerNode, "GPU"))
	return nil
}

// openImagined opens a backend with as many devices as the node has GPUs.
func (w *World) openImagined(world forecast.World) error {
	if err := setXLAThreads(len(w.cpus.list) + world.GPUsPerNode); err != nil {
		return err
	}
	backend, err := w.openBackend(deviceOptions(w.platform, world.GPUsPerNode, 0, nil))
	if err != nil {
		return err
	}
	f := w.forecaster
	if err := pjrt.Pretend(w.platform, pjrt.Pretence{Ranks: 1, Take: f.take, Updates: f.updates, Divided: f.isStep}); err != nil {
		return err
	}
	w.backend, w.devices, w.peers, w.environment.Size = backend, world.GPUsPerNode, alone{}, 1
	return w.setMesh()
}

// isStep reports whether a program for several devices that is compiled now is the training step.
func (f *forecaster) isStep() bool { return f.store != nil && !f.preparing }

// prepares runs what compiles programs for several devices before the step.
func (f *forecaster) prepares(prepare func() error) error {
	if f == nil {
		return prepare()
	}
	f.preparing = true
	defer func() { f.preparing = false }()
	return prepare()
}

// perDevice returns by how much the step of one of the devices computes less than the step's
// program, and over how many devices its smallest collectives are.
func (f *forecaster) perDevice() (fewer float64, ranks int) {
	world := f.question.World
	if !f.divides {
		return 1, world.Ranks()
	}
	if columns := world.GPUsPerNode / f.rows; columns > 1 {
		return float64(world.GPUsPerNode), min(f.rows, columns)
	}
	return float64(world.GPUsPerNode), f.rows
}
