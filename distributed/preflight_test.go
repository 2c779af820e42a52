package distributed_test

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/machine"
	"gonbatch/internal/quota/quotatest"
)

// TestCheck: the preflight check lists the place of every rank, and its all-reduce is right.
func TestCheck(t *testing.T) {
	if ranktest.InRank() {
		if err := distributed.Check(t.Context()); err != nil {
			t.Error(err)
		}
		return
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		launcher ranktest.Launcher
		ranks    int
		library  string
	}{
		{ranktest.OpenMPI, 1, "no other ranks"},
		{ranktest.OpenMPI, 2, `Open MPI v[0-9.]+`},
		{ranktest.MPICH, 2, `MPICH Version: [0-9.]+`},
		{ranktest.Torchrun, 3, "a TCP ring"},
	}
	for _, test := range tests {
		t.Run(test.library, func(t *testing.T) {
			out, err := ranktest.Start(t, test.launcher, test.ranks, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			rows := regexp.MustCompile(`(?m)^\d+ +`+regexp.QuoteMeta(host)+` +\S.* +1 cpu device, PJRT \d+\.\d+ +`+test.library+`$`).FindAllString(out, -1)
			if len(rows) != test.ranks {
				t.Errorf("%d ranks with %s, want %d:\n%s", len(rows), test.library, test.ranks, out)
			}
			if lines := regexp.MustCompile(`(?m)^all-reduce over \d ranks? inside an XLA program: the sum is right, 1 MB in .*s$`).FindAllString(out, -1); len(lines) != 1 {
				t.Errorf("%d results, want rank 0's alone:\n%s", len(lines), out)
			}
		})
	}
}

// TestCheckQuota: ranks compute with as many threads as the quota of their control group allows,
// and rank 0 says so where they outnumber it.
func TestCheckQuota(t *testing.T) {
	if ranktest.InRank() {
		if err := distributed.Check(t.Context()); err != nil {
			t.Error(err)
		}
		t.Logf("NPROC=%s, GOMAXPROCS %d", os.Getenv("NPROC"), runtime.GOMAXPROCS(0))
		return
	}
	if runtime.NumCPU() < 2 {
		machine.Lacks(t, "a quota below the number of CPUs needs two")
	}
	const crowded = "warning: 2 ranks of one machine share 1 CPU and compute in turn: 1 rank there would train at least as fast"
	for _, test := range []struct {
		launcher ranktest.Launcher
		ranks    int
		want     map[string]int
	}{
		{ranktest.OpenMPI, 1, map[string]int{" 1 (a quota) ": 1, "NPROC=1, GOMAXPROCS 2": 1, "warning": 0}},
		{ranktest.OpenMPI, 2, map[string]int{"NPROC=1, GOMAXPROCS 2": 2, crowded: 1}},
		{ranktest.Torchrun, 2, map[string]int{"NPROC=1, GOMAXPROCS 2": 2, crowded: 1}},
	} {
		t.Run(fmt.Sprint(test.ranks, " ", test.launcher), func(t *testing.T) {
			out, err := ranktest.Start(t, test.launcher.Within(quotatest.Group(t, 1.9)), test.ranks, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for text, count := range test.want {
				if got := strings.Count(out, text); got != count {
					t.Errorf("%q is there %d times, want %d:\n%s", text, got, count, out)
				}
			}
		})
	}
}
