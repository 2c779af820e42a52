package distributed

import "testing"

func TestCrowded(t *testing.T) {
	rank := func(machine uint64, cpus ...int) (r rankCPUs) {
		r.Machine = machine
		for _, cpu := range cpus {
			r.CPUs.Set(cpu)
		}
		return r
	}
	container := rank(1, 0, 1)
	container.Host = 5
	for _, test := range []struct {
		name  string
		ranks []rankCPUs
		want  bool
	}{
		{"a core for each rank", []rankCPUs{rank(1, 0), rank(1, 1)}, false},
		{"as many ranks as CPUs", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1)}, false},
		{"more ranks than CPUs", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(1, 0, 1)}, true},
		{"two machines", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(2, 0, 1), rank(2, 0, 1)}, false},
		{"one of two machines", []rankCPUs{rank(1, 0, 1), rank(2, 3), rank(2, 3)}, true},
		{"some of a machine's CPUs", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(1, 0), rank(1, 0, 1, 2, 3, 4)}, true},
		{"CPUs beside them", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(1, 0, 1, 2)}, false},
		{"two containers", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), container}, true},
	} {
		if got := crowded(test.ranks); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
