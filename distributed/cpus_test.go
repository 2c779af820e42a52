package distributed

import (
	"slices"
	"testing"

	"gonbatch/internal/cluster"
)

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
	quota := func(cpus, group uint64) rankCPUs {
		r := rank(1, 0, 1, 2, 3, 4, 5, 6, 7)
		r.Quota, r.Group = cpus, group
		return r
	}
	bound := func(cpu int, quota uint64) rankCPUs {
		r := rank(1, cpu)
		r.Quota, r.Group = quota, 9
		return r
	}
	for _, test := range []struct {
		name  string
		ranks []rankCPUs
		want  crowd
	}{
		{"a core for each rank", []rankCPUs{rank(1, 0), rank(1, 1)}, crowd{}},
		{"as many ranks as CPUs", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1)}, crowd{}},
		{"more ranks than CPUs", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(1, 0, 1)}, crowd{3, 2}},
		{"two machines", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(2, 0, 1), rank(2, 0, 1)}, crowd{}},
		{"one of two machines", []rankCPUs{rank(1, 0, 1), rank(2, 3), rank(2, 3)}, crowd{2, 1}},
		{"some of a machine's CPUs", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(1, 0), rank(1, 0, 1, 2, 3, 4)}, crowd{3, 2}},
		{"CPUs beside them", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), rank(1, 0, 1, 2)}, crowd{}},
		{"two containers", []rankCPUs{rank(1, 0, 1), rank(1, 0, 1), container}, crowd{3, 2}},
		{"the worst of two", []rankCPUs{rank(1, 0), rank(1, 0), rank(2, 0, 1), rank(2, 0, 1), rank(2, 0, 1)}, crowd{2, 1}},
		{"a quota", []rankCPUs{quota(2, 7), quota(2, 7)}, crowd{}},
		{"more ranks than a quota", []rankCPUs{quota(2, 7), quota(2, 7), quota(2, 7)}, crowd{3, 2}},
		{"a quota that bound ranks outnumber", []rankCPUs{bound(0, 1), bound(1, 1)}, crowd{2, 1}},
		{"two quotas", []rankCPUs{quota(1, 7), quota(1, 8)}, crowd{}},
	} {
		if got := crowded(test.ranks); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// TestQuotaLimits: as many threads as the quota allows compute, and ranks that share it divide it.
// They aren't bound: another container may have chosen the same CPUs.
func TestQuotaLimits(t *testing.T) {
	allowed := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, test := range []struct {
		name                  string
		quota, ranks, perTask int
		want                  string
	}{
		{"one rank", 3, 1, 0, "3 (a quota)"},
		{"ranks that share it", 5, 2, 0, "2 (a quota)"},
		{"more ranks than it allows", 2, 3, 0, "1 (a quota)"},
		{"fewer by --cpus-per-task", 6, 2, 2, "2 (not bound)"},
		{"more by --cpus-per-task", 4, 2, 3, "2 (a quota)"},
		{"not a whole number for each", 7, 3, 0, "2 (a quota)"},
		{"more than there are CPUs", 9, 2, 0, "0-3"},
		{"none", 0, 2, 0, "0-3"},
	} {
		var mine rankCPUs
		for _, cpu := range allowed {
			mine.CPUs.Set(cpu)
		}
		mine.Quota, mine.Group = uint64(test.quota), 7
		got, given := choose(cluster.Environment{CPUs: test.perTask}, slices.Repeat([]rankCPUs{mine}, test.ranks), allowed)
		if got.String() != test.want || given {
			t.Errorf("%s: %s, %v; want %s", test.name, got, given, test.want)
		}
	}
}
