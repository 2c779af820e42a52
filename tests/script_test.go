package tests

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// printing prints what each rank finds: variables by name, limits, and variables that leaked.
var printing = []string{`var names = flag.String("names", "", "variables to print")`, `%%
for _, name := range strings.Split(*names, ",") {
	value, set := os.LookupEnv(name)
	fmt.Printf("%s=%q %v\n", name, value, set)
}
var stack syscall.Rlimit
syscall.Getrlimit(syscall.RLIMIT_STACK, &stack)
fmt.Printf("stack=%d umask=%03o\n", stack.Cur, syscall.Umask(0))
for _, variable := range os.Environ() {
	if strings.HasPrefix(variable, "gonbatch_") || strings.HasPrefix(variable, "GONBATCH_ENV_") {
		fmt.Println("leaked:", variable)
	}
}`}

// TestUserEnvironment checks, on a real cluster, that no variable, setup command or directive of a
// user changes what the batch script or srun does, and that all of them reach the programs.
func TestUserEnvironment(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	odd := "sp ace 'q' \"d\" $(x) `y` \\ é网\nline two"
	for _, tc := range []struct {
		name string
		args []string
		// print lists variables to print, and want is what each rank must print.
		print string
		want  []string
	}{
		{"names of the script's own variables", []string{"--env", "rank=r", "--env", "stop=1", "--env", "start=5", "--env", "finished=x", "--env", "code=9", "--env", "woken=w",
			"--env", "ranks=7", "--env", "starts=s", "--env", "exit_status=e"},
			"rank,stop,start,finished,code,woken,ranks,starts,exit_status",
			[]string{`rank="r"`, `stop="1"`, `start="5"`, `finished="x"`, `code="9"`, `woken="w"`, `ranks="7"`, `starts="s"`, `exit_status="e"`}},
		{"names that mean something to shells and srun", []string{"--env", "PATH=/nowhere", "--env", "LD_LIBRARY_PATH=/nowhere", "--env", "IFS=7", "--env", "HOME=/dev/null/none", "--env", "TMPDIR=/dev/null/none"},
			"PATH,LD_LIBRARY_PATH,HOME,TMPDIR", []string{`PATH="/nowhere"`, `LD_LIBRARY_PATH="/nowhere"`, `HOME="/dev/null/none"`, `TMPDIR="/dev/null/none"`}},
		{"odd values", []string{"--env", "ODD=" + odd, "--setup", "export ALSO=\"$ODD\""}, "ODD,ALSO", []string{fmt.Sprintf("ODD=%q", odd), fmt.Sprintf("ALSO=%q", odd)}},
		{"a setup with options of the shell and traps", []string{"--setup", "set -euo pipefail; set -f; IFS=x; trap 'echo trapped' EXIT USR1 TERM; shopt -s nullglob",
			"--setup", "say() { :; }; finish() { :; }; end() { :; }; export SET=up; ulimit -s 4000; umask 027; cd /", "--setup", "sleep 1000 & unset HOME"},
			"SET,HOME", []string{`SET="up"`, `HOME="" false`, "stack=4096000 umask=027"}},
		{"a setup that changes what --env gives", []string{"--env", "LIST=a", "--env", "GONE=1", "--setup", "export LIST=$LIST:b; unset GONE"}, "LIST,GONE", []string{`LIST="a:b"`, `GONE="" false`}},
		{"nothing of the shell's is exported", []string{"--directive=--export=NONE", "--env", "A=1"}, "A,OF_THE_SHELL", []string{`A="1"`, `OF_THE_SHELL="" false`}},
		{"one variable is exported", []string{"--directive=--export=OF_THE_SHELL"}, "OF_THE_SHELL", []string{`OF_THE_SHELL="yes"`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, append(c.Env(), "OF_THE_SHELL=yes")...)
			args := append([]string{"--nodes", "2", "--mpi", "none", "--follow"}, tc.args...)
			out, err := u.submit(t, append(args, u.write(t, "printing.ipynb", printing...), "--", "-names", tc.print)...)
			if err != nil {
				t.Fatalf("%v\n%s\n%s", err, out, read(t, u.run(t).SchedulerLog()))
			}
			for rank := range 2 {
				log := read(t, u.run(t).RankLog(rank))
				wantAll(t, log, tc.want...)
				if strings.Contains(log, "leaked") {
					t.Errorf("rank %d: %s", rank, log)
				}
			}
			if log := read(t, u.run(t).SchedulerLog()); strings.Contains(log, "trapped") || strings.Contains(log, "error") {
				t.Errorf("the script's log:\n%s", log)
			}
		})
	}
}

// TestFailingSetup checks that a job whose setup runs "set -e" records its end like any other, and
// that one whose setup fails says so.
func TestFailingSetup(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Nodes(1))
	for _, tc := range []struct {
		name  string
		setup string
		args  []string
		code  int
		log   string
	}{
		{"set -e, and a program that fails", "set -e", []string{"--", "-code", "3"}, 3, "ends with exit code 3"},
		{"a setup that fails", "(exit 4)", nil, 4, "ends with exit code 4"},
		{"a setup that exits", "exit 5", nil, 5, "ends with exit code 5"},
		{"a setup that exits well", "exit 0", nil, 1, "a command of --setup has ended the shell: use no exit and no exec in it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t, c.Env()...)
			name := u.write(t, "exits.ipynb", `var code = flag.Int("code", 0, "")`, "%%\nos.Exit(*code)")
			out, err := u.submit(t, append([]string{"--follow", "--setup", tc.setup, name}, tc.args...)...)
			if err == nil || !strings.Contains(out, fmt.Sprintf("exit code %d", tc.code)) {
				t.Errorf("%v\n%s", err, out)
			}
			wantAll(t, read(t, u.run(t).SchedulerLog()), tc.log)
			if status := read(t, u.run(t).ExitStatus()); !strings.HasSuffix(status, fmt.Sprintf(" %d\n", tc.code)) {
				t.Errorf("exit-status %q", status)
			}
		})
	}
}

// TestNotebookEnvironment checks that an %env of a name that srun needs reaches only the cells.
func TestNotebookEnvironment(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Nodes(1))
	u := newUser(t, c.Env()...)
	name := u.write(t, "path.ipynb", "%env PATH /nowhere\n%env rank mine", "%%\nfmt.Println(os.Getenv(\"PATH\"), os.Getenv(\"rank\"))", "!echo \"shell $rank\"")
	wantAll(t, u.mustSubmit(t, "--follow", name), "/nowhere mine\n", "shell mine\n")
}

// TestGPUType checks that a type of GPU is requested in SLURM's own syntax.
func TestGPUType(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Nodes(1), cluster.GPUType("a100"))
	u := newUser(t, c.Env()...)
	name := u.write(t, "gpus.ipynb", "!scontrol show job $SLURM_JOB_ID")
	wantAll(t, u.mustSubmit(t, "--gpus-per-node", "a100:1", "--platform", "cpu", "--follow", name), "gres:gpu:a100:1")
	out, err := u.submit(t, "--gpus-per-node", "h100:1", "--platform", "cpu", name)
	if err == nil {
		t.Error("GPUs that the cluster does not have were accepted")
	}
	wantAll(t, out, "--gpus-per-node=h100:1: a node has no h100 GPUs in partition main")
}

// TestInheritedOptions checks that the shell's variables for sbatch do not override the options,
// and that the variables of the job that submit runs in do not reach the new job.
func TestInheritedOptions(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t)
	t.Run("SBATCH variables", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, append(c.Env(), "SBATCH_TIMELIMIT=3", "SBATCH_JOB_NAME=other", "SBATCH_OPEN_MODE=truncate")...)
		out := u.mustSubmit(t, "--time", "7", "--follow", u.write(t, "sleeps.ipynb", "!scontrol show job $SLURM_JOB_ID"))
		wantAll(t, out, "TimeLimit=00:07:00", "JobName=sleeps",
			"submit: warning: SBATCH_TIMELIMIT=3 is ignored: give --time=3\n", "submit: warning: SBATCH_OPEN_MODE=truncate is ignored: give sbatch's option with --directive\n")
		out = u.mustSubmit(t, "--no-submit", "sleeps.ipynb")
		wantAll(t, out, "submit: warning: sbatch will prefer SBATCH_TIMELIMIT=3 to the job's own options: unset SBATCH_TIMELIMIT before you queue it\n")
	})
	t.Run("from within a job", func(t *testing.T) {
		t.Parallel()
		// The variables that SLURM sets for a rank bound to CPU 0, such as a Jupyter server on a
		// node.
		leaked := []string{"SLURM_CPU_BIND=quiet,mask_cpu:0x1", "SLURM_CPU_BIND_TYPE=mask_cpu:", "SLURM_CPU_BIND_LIST=0x1", "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1", "SLURM_NTASKS=1",
			"SLURM_JOB_ID=999999", "SLURM_PROCID=0", "SLURM_MEM_PER_NODE=100", "PMIX_RANK=0", "OMPI_COMM_WORLD_SIZE=5", "SLURM_KILL_BAD_EXIT=0"}
		names := "SLURM_CPU_BIND,SLURM_CPU_BIND_LIST,OMPI_COMM_WORLD_SIZE"
		wanted := []string{`SLURM_CPU_BIND="" false`, `SLURM_CPU_BIND_LIST="" false`, `OMPI_COMM_WORLD_SIZE="" false`}
		u := newUser(t, append(c.Env(), leaked...)...)
		name := u.write(t, "printing.ipynb", printing...)
		u.mustSubmit(t, "--nodes", "2", "--mpi", "none", "--follow", name, "--", "-names", names)
		first := u.run(t)
		wantAll(t, read(t, first.RankLog(1)), wanted...)
		// A user queues the second job by hand, from the same shell.
		u = newUser(t, append(c.Env(), leaked...)...)
		u.write(t, "printing.ipynb", printing...)
		u.mustSubmit(t, "--nodes", "2", "--mpi", "none", "--no-submit", name, "--", "-names", names)
		run := u.run(t)
		cmd := append(append([]string{"env"}, leaked...), "sbatch", "--parsable", run.Script())
		gone(t, c, strings.TrimSpace(mustOutput(t, c, cmd...)))
		wantAll(t, read(t, run.RankLog(1)), wanted...)
	})
}

// secretCell requeues its job in the first start. It looks for the secret's value in all command
// lines.
const secretCell = `%%
value := strings.Join([]string{"s3cr3t", "value"}, "-")
if os.Getenv("API_KEY") != value {
	panic("no key")
}
lines, err := exec.Command("ps", "-eo", "args").Output()
fmt.Println("command lines have it:", strings.Contains(string(lines), value), err)
if os.Getenv("GONBATCH_RESTARTS") == "0" {
	fmt.Println(exec.Command("scontrol", "requeue", os.Getenv("SLURM_JOB_ID")).Run())
	time.Sleep(time.Minute)
}
fmt.Println("the second start has it")`

// TestSecret checks that the value of a secret reaches the programs, even in a later start, and is
// in no file, and that other users cannot read the run.
func TestSecret(t *testing.T) {
	t.Parallel()
	const value = "s3cr3t-value"
	c := cluster.Start(t)
	for _, args := range [][]string{nil, {"--directive=--export=NONE"}, {"--setup", "export OTHER=1"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			u := newUser(t, append(c.Env(), "API_KEY="+value)...)
			args := append(args, "--secret", "API_KEY", "--follow", u.write(t, "secret.ipynb", secretCell))
			out := u.mustSubmit(t, args...)
			wantAll(t, out, "the second start has it")
			wantAll(t, read(t, u.run(t).RankLog(0)), "command lines have it: false <nil>")
			wantPrivate(t, u.run(t), value)
		})
	}
	t.Run("not set", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, c.Env()...)
		out, err := u.submit(t, "--secret", "API_KEY", u.write(t, "secret.ipynb", secretCell))
		if err == nil {
			t.Error("it was queued")
		}
		wantAll(t, out, "submit: --secret API_KEY: your shell exports no variable of that name; export API_KEY=... first\n")
		out, _ = u.submit(t, "--secret", "API_KEY="+value, "secret.ipynb")
		wantAll(t, out, "submit: --secret API_KEY=...: give the name only")
		if strings.Contains(out, value) {
			t.Errorf("the value is repeated: %s", out)
		}
	})
	t.Run("not in the job", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, append(c.Env(), "API_KEY="+value)...)
		u.mustSubmit(t, "--secret", "API_KEY", "--no-submit", u.write(t, "secret.ipynb", secretCell))
		run := u.run(t)
		gone(t, c, strings.TrimSpace(mustOutput(t, c, "sbatch", "--parsable", run.Script()))) // From a shell without the variable.
		wantAll(t, read(t, run.SchedulerLog()), "the job has no variable API_KEY, which --secret API_KEY promises: queue it from a shell that exports API_KEY\n")
	})
}

// wantPrivate fails the test for each file that contains the text, and for each that other users
// may read. A file that the programs share with a cache is protected by its folder.
func wantPrivate(t *testing.T, run rundir.Dir, text string) {
	t.Helper()
	err := filepath.WalkDir(run.Path(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if stat := info.Sys().(*syscall.Stat_t); info.Mode().Perm()&0o077 != 0 && (entry.IsDir() || stat.Nlink == 1) && filepath.Dir(path) != run.Logs() {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		if entry.Type().IsRegular() && strings.Contains(read(t, path), text) {
			t.Errorf("the value is in %s", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
