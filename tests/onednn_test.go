package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/machine"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// kernels is a notebook whose ranks say what computes their convolutions.
var kernels = []string{
	"import (\n\t\"fmt\"\n\t\"log\"\n\n\t\"gonbatch/distributed\"\n)",
	"%%\nworld, err := distributed.Init()\nif err != nil {\n\tlog.Fatal(err)\n}\ndefer world.Close()\nfmt.Println(\"computes:\", world.Kernels())",
}

// TestOneDNNInJobs: the ranks of a job compute with the oneDNN of the user who submits it, on this
// machine and on a cluster, without an option.
func TestOneDNNInJobs(t *testing.T) {
	t.Parallel()
	library, err := filepath.EvalSymlinks(ranktest.OneDNN(t))
	if err != nil {
		t.Fatal(err)
	}
	c := cluster.Start(t, cluster.Nodes(2))
	env := append(c.Env(), rundir.EnvOneDNN+"="+library)
	for name, args := range map[string][]string{
		"one rank here": {"--local"}, "two ranks here": {"--local", "--tasks", "2"}, "two nodes": {"--nodes", "2", "--follow"},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, env...)
			u.mustSubmit(t, append(args, u.write(t, "kernels.ipynb", kernels...))...)
			run := u.run(t)
			one, err1 := os.Stat(library)
			other, err2 := os.Stat(run.OneDNN())
			if err1 != nil || err2 != nil || one.Size() != other.Size() {
				t.Errorf("%s is not a copy: %v, %v", run.OneDNN(), err1, err2)
			}
			wantAll(t, read(t, run.RankLog(0)), fmt.Sprintf("gonbatch: oneDNN 3.2.0 computes convolutions and large products of float32 (%s)", run.OneDNN()))
			for rank := range 2 {
				if rank == 0 || len(args) > 1 {
					wantAll(t, read(t, run.RankLog(rank)), "computes: oneDNN 3.2.0\n")
				}
			}
		})
	}
	wrong := newUser(t, append(c.Env(), rundir.EnvOneDNN+"=/nowhere/libdnnl.so.3")...)
	out, err := wrong.submit(t, "--nodes", "2", wrong.write(t, "kernels.ipynb", kernels...))
	if err == nil {
		t.Errorf("a wrong path is accepted:\n%s", out)
	}
	wantAll(t, out, rundir.EnvOneDNN+"=/nowhere/libdnnl.so.3: ", "no such file", "--env "+rundir.EnvOneDNN+"=/nowhere/libdnnl.so.3")
}

// TestOneDNNIsInstalled: a user who has no oneDNN gets one with the first job.
func TestOneDNNIsInstalled(t *testing.T) {
	t.Parallel()
	tier.Long(t)
	if runtime.GOARCH != "amd64" {
		machine.Lacks(t, "gonbatch installs oneDNN on x86-64 only")
	}
	cache := t.TempDir()
	u := newUser(t, rundir.EnvOneDNN+"=", rundir.EnvPluginDir+"=", "XDG_CACHE_HOME="+cache)
	plugins, err := plugin.Ensure(t.Context(), plugin.Options{Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(cache, "gonbatch", "plugins", filepath.Base(plugins)), os.DirFS(plugins)); err != nil {
		t.Fatal(err)
	}
	out := u.mustSubmit(t, "--local", u.write(t, "kernels.ipynb", kernels...))
	wantAll(t, out, "onednn-cpu-gomp==2023.2.0 (pip)")
	wantAll(t, read(t, u.run(t).RankLog(0)), "computes: oneDNN 3.2.0\n")
}
