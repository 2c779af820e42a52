package distributed

import (
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
	for name, w := range map[string]*World{"asked for": {devices: 4}, "in use": {devices: 4, flexible: true, busy: true}} {
		if err := w.FitDevices(3); err != nil || w.Devices() != 4 {
			t.Errorf("%s: uses %d, %v", name, w.Devices(), err)
		}
	}
}
