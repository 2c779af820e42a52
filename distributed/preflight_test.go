package distributed_test

import (
	"os"
	"regexp"
	"testing"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
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
