package tests

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// TestPreflight checks the place before there is a notebook: this machine, and two nodes with
// either MPI.
func TestPreflight(t *testing.T) {
	t.Parallel()
	t.Run("this machine", func(t *testing.T) {
		t.Parallel()
		out := newUser(t).mustSubmit(t, "preflight", "--local", "--tasks", "2")
		wantPlaces(t, out, `0 +\S+ +\S+ +1 cpu device, PJRT [0-9.]+ +\S.*`, `1 +\S+ +\S+ +1 cpu device, PJRT [0-9.]+ +\S.*`, `all-reduce over 2 ranks .* the sum is right, .*s`)
	})
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, cluster.Start(t, cluster.Nodes(2)).Env()...)
		for mpi, library := range map[string]string{"pmix": "Open MPI v", "pmi2": "MPICH Version: "} {
			out := u.mustSubmit(t, "preflight", "--nodes", "2", "--mpi", mpi)
			wantPlaces(t, out, `0 +n1 +\S.* +1 cpu device, .* +`+library+`[0-9.]+`, `1 +n2 +\S.* +1 cpu device, .* +`+library+`[0-9.]+`, `all-reduce over 2 ranks .* the sum is right, .*s`)
		}
	})
	t.Run("a rank that MPI does not let go", func(t *testing.T) {
		tier.Long(t) // The other rank computes for half a minute; package mpi has it in short.
		t.Parallel()
		u := newUser(t, cluster.Start(t, cluster.Nodes(2)).Env()...)
		u.mustSubmit(t, "preflight", "--nodes", "2", "--mpi", "pmi2", "--mpi-library", ranktest.StuckMPI(t))
		wantAll(t, read(t, u.run(t).RankLog(1)), "warning: mpi: MPI_Finalize does not return; this rank ends without it")
	})
	t.Run("ranks that do not find one another", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, cluster.Start(t, cluster.Nodes(2)).Env()...)
		out, err := u.submit(t, "preflight", "--nodes", "2", "--mpi", "none", "--mpi-library", "libmpich.so.12")
		if err == nil {
			t.Errorf("it succeeded:\n%s", out)
		}
		wantAll(t, out, "says rank 0 of 1", "srun --mpi=pmi2")
	})
	t.Run("a node that does not see the run root", func(t *testing.T) {
		t.Parallel()
		c := cluster.Start(t, cluster.Nodes(2))
		u := newUser(t, c.Env()...)
		root := filepath.Join(u.folder, "mine")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := c.On("n2", "mount", "-t", "tmpfs", "none", root); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := u.submit(t, "preflight", "--nodes", "2", "--run-root", root)
		if err == nil {
			t.Errorf("it succeeded:\n%s", out)
		}
		wantAll(t, out, "rank 1 (died): SLURM could not start it: ", "can its node see "+root)
	})
}

// wantPlaces fails the test for each pattern that matches no line of out.
func wantPlaces(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(out) {
			t.Errorf("no line %q in:\n%s", line, out)
		}
	}
}
