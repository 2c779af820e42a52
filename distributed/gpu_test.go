package distributed_test

import (
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
	"testing"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// gpuLaunchers start ranks on a machine with four GPUs.
func gpuLaunchers(t *testing.T) []ranktest.Launcher {
	t.Helper()
	return []ranktest.Launcher{ranktest.Torchrun.OnGPUs(t, 4), ranktest.OpenMPI.OnGPUs(t, 4), ranktest.MPICH.OnGPUs(t, 4)}
}

// TestCheckOnGPUs: the ranks of a job find one another through XLA.
func TestCheckOnGPUs(t *testing.T) {
	if ranktest.InRank() {
		if err := distributed.Check(t.Context()); err != nil {
			t.Error(err)
		}
		return
	}
	for i, launcher := range gpuLaunchers(t) {
		t.Run(launcher.Name, func(t *testing.T) {
			n := 2 + i
			out, err := ranktest.Start(t, launcher, n, nil)
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for rank := range n {
				row := fmt.Sprintf(`(?m)^%d +\S.* +1 cuda device, GPU %d, .*PJRT \d+\.\d+ `, rank, rank)
				if !regexp.MustCompile(row).MatchString(out) {
					t.Errorf("no row matches %q:\n%s", row, out)
				}
			}
		})
	}
}

// TestGPUsForRanks: each rank computes on its own GPU, however the scheduler assigns them.
// Assignments that can't work are refused, with an error that names the ranks and the GPU.
func TestGPUsForRanks(t *testing.T) {
	if ranktest.InRank() {
		if own := os.Getenv("VISIBLE_" + os.Getenv("RANK")); own != "" {
			t.Setenv("CUDA_VISIBLE_DEVICES", own)
		}
		w, err := distributed.Init()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close() //nolint:errcheck // its result is not tested
		p, err := w.Check()
		if err != nil {
			t.Fatal(err)
		}
		w.Printf("%s", p)
		return
	}
	tests := []struct {
		name string
		gpus int
		env  []string
		want []string // Patterns.
		ok   bool
	}{
		{"all visible", 2, nil, []string{`0 .*GPU 0, `, `1 .*GPU 1, `}, true},
		{"one each", 2, []string{"VISIBLE_0=1", "VISIBLE_1=0"}, []string{`0 .*GPU 1, `, `1 .*GPU 0, `}, true},
		{"the job's, of more", 4, []string{"CUDA_VISIBLE_DEVICES=3,1"}, []string{`0 .*GPU 3, `, `1 .*GPU 1, `}, true},
		{"parts of one", 1, []string{"VISIBLE_0=MIG-1111", "VISIBLE_1=MIG-2222"}, []string{`0 .*GPU MIG-1111, `, `1 .*GPU MIG-2222, `}, true},
		{"the same one", 2, []string{"CUDA_VISIBLE_DEVICES=1"}, []string{"rank 0 and rank 1 on \\S+ use the same GPU 1: give each rank its own"}, false},
		{"too few", 1, nil, []string{"rank 1 on \\S+ is number 2 of the ranks on its node, but sees 1 GPU: more tasks than devices"}, false},
		{"none", 0, nil, []string{"rank 0 on \\S+: there is no GPU", "rank 1 on \\S+: there is no GPU"}, false},
		{"hidden from one", 2, []string{"VISIBLE_1=-1"}, []string{`rank 1 on \S+: CUDA_VISIBLE_DEVICES="-1" hides all GPUs`}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out, err := ranktest.Start(t, ranktest.Torchrun.OnGPUs(t, test.gpus), 2, test.env)
			if (err == nil) != test.ok {
				t.Errorf("%v:\n%s", err, out)
			}
			for _, want := range test.want {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("the output lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

// TestClientTrouble: if a rank can't open its GPU while the others wait for it, all ranks end, and
// the report names that rank.
func TestClientTrouble(t *testing.T) {
	if ranktest.InRank() {
		w, err := distributed.Init()
		if err != nil {
			log.Fatal(err)
		}
		log.Fatalf("%v was opened", w)
	}
	t.Parallel()
	tests := []struct {
		trouble string
		kind    rundir.FailureKind
		want    string
	}{
		{"1 dies", rundir.Died, "its process ended without World.Close"},
		{"0 dies", rundir.Died, "its process ended without World.Close"},
		{"2 fails", rundir.Died, "its process ended without World.Close"},
		{"1 stops", rundir.Stuck, "has been silent for"},
	}
	for _, test := range tests {
		t.Run(test.trouble, func(t *testing.T) {
			t.Parallel()
			dir := rundir.At(t.TempDir())
			ended := ranktest.StartLogged(t, ranktest.Torchrun.OnGPUs(t, 3), 3, dir.Path(), []string{
				rundir.EnvDir + "=" + dir.Path(), "TESTPLUGIN_TROUBLE=" + test.trouble, "GONBATCH_STUCK_TIMEOUT=" + stuckLimit.String()})
			t.Cleanup(func() {
				if t.Failed() {
					showLogs(t, dir)
				}
			})
			for rank, e := range ended {
				if e.Code == 0 {
					t.Errorf("rank %d ended with code 0", rank)
				}
			}
			f, err := rundir.ReadFailure(dir)
			if err != nil {
				t.Fatal(err)
			}
			if f.Kind != test.kind || fmt.Sprint(f.Rank) != test.trouble[:1] || !strings.Contains(f.Error, test.want) {
				t.Errorf("recorded: %+v; want %s of rank %s: %s", f, test.kind, test.trouble[:1], test.want)
			}
		})
	}
}
