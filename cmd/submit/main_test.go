package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/run"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"submit": main,
	})
}

// TestScripts runs the user documentation in testdata/script, with a fake SLURM if a script wants
// one.
func TestScripts(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_CACHE_HOME", cache)
			env.Setenv("GOPATH", os.Getenv("GOPATH"))
			env.Setenv("GOMODCACHE", filepath.Join(goPath(), "pkg", "mod"))
			env.Setenv("GONBATCH_SOURCE", checkout)
			env.Setenv("GONBATCH_PLUGIN_DIR", filepath.Join(env.WorkDir, "plugin"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("SYSTEM_PATH", env.Getenv("PATH"))
			env.Setenv("PATH", filepath.Join(env.WorkDir, "fake")+string(os.PathListSeparator)+env.Getenv("PATH"))
			if err := makeExecutable(filepath.Join(env.WorkDir, "fake")); err != nil {
				return err
			}
			// A run only links the plugin; the scripts' programs never load it.
			if err := os.Mkdir(filepath.Join(env.WorkDir, "plugin"), 0o755); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(env.WorkDir, "plugin", "pjrt_c_api_cpu_plugin.so"), []byte("plugin"), 0o644)
		},
	})
}

func goPath() string {
	if path := os.Getenv("GOPATH"); path != "" {
		return path
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, "go")
}

func makeExecutable(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	for _, e := range entries {
		if err := os.Chmod(filepath.Join(dir, e.Name()), 0o755); err != nil {
			return err
		}
	}
	return err
}

func TestFlags(t *testing.T) {
	defaults := submitOptions{SchedulerName: "slurm", Tasks: 1, RunRoot: "runs", Request: run.Request{
		Path: "x.ipynb", Job: submit.JobSpec{Nodes: 1, TasksPerNode: 1, MPI: "auto", MaxRestarts: 10}}}
	for _, tc := range []struct {
		name string
		args []string
		want func(*submitOptions)
	}{
		{"defaults", []string{"x.ipynb"}, func(*submitOptions) {}},
		{"local", []string{"--local", "--tasks", "2", "x.ipynb"}, func(o *submitOptions) { o.Local, o.Tasks = true, 2 }},
		{"program's arguments", []string{"x.ipynb", "--", "-epochs", "3", "--nodes"}, func(o *submitOptions) { o.Job.Args = []string{"-epochs", "3", "--nodes"} }},
		{"lists keep commas and spaces", []string{"--env", "A=1,2", "--env", "B=x y", "--setup", "a, b", "--module", "m", "--directive=--exclusive", "--cell", "train", "x.ipynb"},
			func(o *submitOptions) {
				o.Env, o.Job.Setup, o.Job.Modules = []string{"A=1,2", "B=x y"}, []string{"a, b"}, []string{"m"}
				o.Job.Directives, o.Notebook.Cells = []string{"--exclusive"}, []string{"train"}
			}},
		{"cluster", []string{"--nodes=2", "--tasks-per-node=4", "--gpus-per-node=a100:4", "--cpus-per-task=8", "--mem=64G", "--time=1:00:00", "--partition=p",
			"--account=a", "--qos=q", "--constraint=c", "--name=n", "--mpi=pmi2", "--mpi-library=l", "--template=t", "--run-root=r", "--platform=cuda",
			"--devices=all", "--max-restarts=3", "--signal-lead=5m", "--dry-run", "--no-submit", "-F", "-f", "p.yaml", "x.ipynb"},
			func(o *submitOptions) {
				o.RunRoot, o.DryRun, o.Notebook.ParamsFile = "r", true, "p.yaml"
				o.Manner = run.Manner{NoSubmit: true, Follow: true}
				o.Job = submit.JobSpec{
					Nodes: 2, TasksPerNode: 4, GPUs: submit.GPUs{Count: 4, Kind: "a100"}, CPUsPerTask: 8, Mem: "64G", Time: "1:00:00",
					Partition: "p", Account: "a", QOS: "q", Constraint: "c", Name: "n", MPI: "pmi2", MPILibrary: "l", Template: "t",
					Platform: "cuda", Devices: "all", MaxRestarts: 3, SignalLead: 5 * time.Minute}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := newSubmitOptions()
			fs := pflag.NewFlagSet("submit", pflag.ContinueOnError)
			got.addFlags(fs)
			if err := fs.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			if err := got.parseArgs(fs.Args(), fs.ArgsLenAtDash()); err != nil {
				t.Fatal(err)
			}
			want := defaults
			tc.want(&want)
			if diff := cmp.Diff(want, *got, cmpopts.IgnoreUnexported(submitOptions{}, run.Manner{}, rundir.Dir{}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFullDisk: a report that can't be written is a failure, even without --json.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close() //nolint:errcheck // nothing is in it
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"status"}, {"config"}, {"--help"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			var said strings.Builder
			a := newApp()
			a.Out, a.Err = full, &said
			if code := execute(t.Context(), a, args); code != 1 || !strings.Contains(said.String(), "no space left on device") {
				t.Errorf("exit code %d: %s", code, said.String())
			}
		})
	}
}
