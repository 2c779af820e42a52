package forecast

import (
	"math"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, name := range Names() {
		g, err := Find(strings.ToUpper(name))
		if err != nil || g.Name != name {
			t.Errorf("%s: got %q, %v", name, g.Name, err)
		}
		if g.Capacity == 0 || g.Bandwidth == 0 || g.TF32 < g.FP32 || g.Half < g.TF32 || g.Link == 0 || g.Network == 0 || g.Origin == "" || g.chip.cores == 0 {
			t.Errorf("%s lacks figures: %+v", name, g)
		}
	}
	for name, want := range map[string]string{
		"a100":    "give a100-40 or a100-80",
		"V100":    "CUDA 13",
		"rtx9090": "give one of a100-40, a100-80, h100, h200, b200, l40s, t4",
	} {
		if _, err := Find(name); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

func TestOfType(t *testing.T) {
	for kind, want := range map[string]string{
		"h100": "h100", "H100": "h100", "nvidia_h100_80gb_hbm3": "h100", "tesla_t4": "t4", "NVIDIA-L40S": "l40s",
		"a100-80": "a100-80", "a100-sxm4-40gb": "a100-40", "nvidia_a100_80gb_pcie": "a100-80", "a100_80gb": "a100-80", "a100-40": "a100-40",
	} {
		if g, err := OfType(kind); err != nil || g.Name != want {
			t.Errorf("%s: got %q, %v, want %s", kind, g.Name, err, want)
		}
	}
	for kind, want := range map[string]string{
		"a100": "give a100-40 or a100-80", "tesla_v100": "CUDA 13", "a100_3g.40gb": "parts of GPUs", "h100_1g.10gb": "parts of GPUs",
		"gtx1080": "none of a100-40", "gh200": "none of", "": "none of",
	} {
		if g, err := OfType(kind); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q, %v, want %q", kind, g.Name, err, want)
		}
	}
}

func TestFloor(t *testing.T) {
	g := GPU{TF32: 100, Half: 200, Bandwidth: 10, Link: 8, Network: 2}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	one := g.Floor(World{Nodes: 1, GPUsPerNode: 1}, Answer{FLOPs: 500, BytesMoved: 20, Reduced: 64})
	near("compute", one.Compute, 5)
	near("memory", one.Memory, 2)
	near("no network", one.Network, 0)
	near("step", one.Step, 5)
	near("half precision", g.Floor(World{Nodes: 1, GPUsPerNode: 1}, Answer{FLOPs: 500, Half: true}).Compute, 2.5)
	near("within a node", g.Floor(World{Nodes: 1, GPUsPerNode: 4}, Answer{Reduced: 64}).Network, 2*64*3/4./8)
	near("between nodes", g.Floor(World{Nodes: 2, GPUsPerNode: 4}, Answer{Reduced: 64}).Network, max(2*64*3/4./8, 2*64*1/2./(4*2)))
	near("one GPU a node", g.Floor(World{Nodes: 4, GPUsPerNode: 1}, Answer{Reduced: 64}).Network, 2*64*3/4./2)
}
