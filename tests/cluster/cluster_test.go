package cluster_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/proc"
	"gonbatch/tests/cluster"
)

func TestCluster(t *testing.T) {
	c := cluster.Start(t)

	t.Run("three nodes are idle", func(t *testing.T) {
		got := fields(t, c, "sinfo", "-h", "-p", "main", "-N", "-o", "%N=%T")
		if want := []string{"n1=idle", "n2=idle", "n3=idle"}; !slices.Equal(got, want) {
			t.Errorf("sinfo: %v, want %v", got, want)
		}
	})
	t.Run("both MPI plugins are there", func(t *testing.T) {
		got := fields(t, c, "srun", "--mpi=list")
		for _, plugin := range []string{"pmix", "pmi2"} {
			if !slices.Contains(got, plugin) {
				t.Errorf("srun --mpi=list: %v, lacks %s", got, plugin)
			}
		}
	})
	for _, mpi := range []string{"pmix", "pmi2"} {
		t.Run("a job on two nodes with "+mpi, func(t *testing.T) {
			got := fields(t, c, "srun", "--quiet", "--mpi="+mpi, "-w", "n1,n2", "--ntasks-per-node=1", "bash", "-c", "echo $(hostname):$SLURM_PROCID")
			slices.Sort(got)
			if want := []string{"n1:0", "n2:1"}; !slices.Equal(got, want) {
				t.Errorf("ranks: %v, want %v", got, want)
			}
		})
	}
	t.Run("a command runs on a node", func(t *testing.T) {
		if got, err := c.On("n2", "hostname"); err != nil || strings.TrimSpace(got) != "n2" {
			t.Errorf("hostname on n2: %q, %v", got, err)
		}
	})
	t.Run("a failing command's error has its output", func(t *testing.T) {
		_, err := c.On("n1", "sh", "-c", "echo no such thing >&2; exit 3")
		if err == nil || !strings.Contains(err.Error(), "no such thing") || !strings.Contains(err.Error(), "exit status 3") {
			t.Errorf("error: %v", err)
		}
	})
}

func TestCrashAndBoot(t *testing.T) {
	c := cluster.Start(t, cluster.Nodes(2), cluster.GPUs(0))
	if err := c.Crash("n2"); err != nil {
		t.Fatal(err)
	}
	if out, err := c.On("n2", "true"); err == nil {
		t.Errorf("a crashed node still runs commands: %q", out)
	}
	waitFor(t, "n2 to be down", func() bool {
		return strings.HasPrefix(fields(t, c, "sinfo", "-h", "-p", "main", "-n", "n2", "-o", "%T")[0], "down")
	})
	if err := c.Boot("n2"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "n2 to be back", func() bool {
		return fields(t, c, "sinfo", "-h", "-p", "main", "-n", "n2", "-o", "%T")[0] == "idle"
	})
}

// TestClusterEnds starts clusters in inner tests that each end in a different way, and checks that
// nothing of them is left.
func TestClusterEnds(t *testing.T) {
	for _, name := range []string{"pass", "panic", "killed"} {
		t.Run(name, func(t *testing.T) {
			dirFile := filepath.Join(t.TempDir(), "dir")
			cmd := exec.Command(os.Args[0], "-test.run=^TestEnding$")
			cmd.Env = append(os.Environ(), "CLUSTER_ENDING="+name, "CLUSTER_DIR_FILE="+dirFile)
			out, err := bounded.CombinedOutput(cmd)
			if (name == "pass") != (err == nil) {
				t.Errorf("inner test: %v\n%s", err, out)
			}
			text, err := os.ReadFile(dirFile)
			if err != nil {
				t.Fatalf("the inner test wrote no cluster folder: %v\n%s", err, out)
			}
			dir, bridge, _ := strings.Cut(string(text), "\n")
			waitFor(t, dir+" to go", func() bool { _, err := os.Stat(dir); return os.IsNotExist(err) })
			if _, err := net.InterfaceByName(bridge); err == nil {
				t.Errorf("network bridge %s is left", bridge)
			}
			if left := processesWith("SLURM_CONF=" + dir + "/slurm.conf"); len(left) > 0 {
				t.Errorf("processes left: %v", left)
			}
		})
	}
}

// TestEnding is the inner test of TestClusterEnds. By itself it does nothing.
func TestEnding(t *testing.T) {
	ending := os.Getenv("CLUSTER_ENDING")
	if ending == "" {
		return
	}
	c := cluster.Start(t, cluster.Nodes(1), cluster.GPUs(0))
	bridge, err := os.ReadFile(filepath.Join(c.Dir, "bridge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(os.Getenv("CLUSTER_DIR_FILE"), []byte(c.Dir+"\n"+strings.TrimSpace(string(bridge))), 0o644); err != nil {
		t.Fatal(err)
	}
	switch ending {
	case "panic":
		panic("ending")
	case "killed":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		time.Sleep(time.Minute)
	}
}

func fields(t *testing.T, c *cluster.Cluster, name string, args ...string) []string {
	t.Helper()
	out, err := c.Run(name, args...)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(out)
	if len(got) == 0 {
		t.Fatalf("%s %v printed nothing", name, args)
	}
	return got
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("waited 5 minutes for %s", what)
}

// processesWith returns the commands of the processes that have NAME=value in their environment.
func processesWith(variable string) []string {
	var found []string
	for pid := range proc.With(variable) {
		found = append(found, proc.Name(pid))
	}
	return found
}
