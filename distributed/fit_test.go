package distributed

import (
	"errors"
	"strings"
	"testing"
)

// TestFitDevices: a batch that devices can't share evenly gets as many as can, unless the number
// was asked for or the devices are in use.
func TestFitDevices(t *testing.T) {
	for devices := 1; devices <= maxCPUDevices; devices *= 2 {
		for batch := range 100 {
			w := &World{devices: devices, flexible: true}
			if err := w.FitDevices(batch); err != nil {
				t.Fatal(err)
			}
			want := devices
			for batch%want != 0 {
				want /= 2
			}
			if w.Devices() != want || (w.mesh == nil) != (want == 1 || want == devices) {
				t.Errorf("a batch of %d on %d devices: uses %d, want %d", batch, devices, w.Devices(), want)
			}
		}
	}
	for name, w := range map[string]*World{"asked for": {devices: 4}, "in use": inUse(4)} {
		if err := w.FitDevices(3); err != nil || w.Devices() != 4 {
			t.Errorf("%s: uses %d, %v", name, w.Devices(), err)
		}
	}
}

// TestFitLanes: the devices share the lanes of a stream too. Once they are in use, an error says
// how many would fit.
func TestFitLanes(t *testing.T) {
	for lanes, want := range map[int]int{0: 8, 1: 1, 4: 4, 6: 2, 24: 8} {
		w := &World{devices: 8, flexible: true}
		if err := w.fitLanes(lanes); err != nil || w.Devices() != want {
			t.Errorf("%d lanes: uses %d devices, want %d: %v", lanes, w.Devices(), want, err)
		}
	}
	w := inUse(8)
	refused := errors.New("refused")
	if err := w.explainBusy(refused, 24, 12); !errors.Is(err, refused) || !strings.Contains(err.Error(), "already uses 8 devices, and their number stays: set GONBATCH_DEVICES=4") {
		t.Error(err)
	}
	for _, batch := range []int{-1, 0, 16} {
		if err := w.explainBusy(refused, batch, 0); err.Error() != refused.Error() {
			t.Errorf("a batch of %d: %v", batch, err)
		}
	}
}

// inUse returns a world that already computes on its devices.
func inUse(devices int) *World {
	w := &World{devices: devices, flexible: true}
	w.busy.Store(true)
	return w
}
