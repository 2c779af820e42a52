package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/rank"
)

// asRank makes the test's process the command that runs a rank.
const asRank = "TEST_AS_RANK"

// shortGrace is the ranks' grace time in tests.
const shortGrace = time.Second

func TestMain(m *testing.M) {
	if _, isRank := os.LookupEnv(asRank); isRank {
		_ = os.Unsetenv(asRank)
		shell := submit.Shell{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Now: time.Now, CommandLine: os.Args}
		os.Exit(rank.Runner{Shell: shell, Grace: shortGrace}.Run(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// staged writes the job of a run, and its submit command, which is the test's process.
func staged(t *testing.T, spec submit.JobSpec) submit.JobSpec {
	t.Helper()
	script := fmt.Sprintf("#!/bin/bash\n%s=1 exec %q \"$@\"\n", asRank, os.Args[0])
	if err := errors.Join(submit.WriteSpec(spec.RunDir, spec, spec), bounded.WriteProgram(spec.RunDir.Submit(), script)); err != nil {
		t.Fatal(err)
	}
	return spec
}

// newSpec stages shell scripts as the programs of cells, in the given order.
func newSpec(t *testing.T, tasks int, cells ...[2]string) submit.JobSpec {
	t.Helper()
	dir, err := rundir.Create(filepath.Join(t.TempDir(), "a 'b' $(c)"), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	spec := submit.JobSpec{Name: "x", Nodes: 1, TasksPerNode: tasks, RunDir: dir, WorkDir: t.TempDir()}
	for _, cell := range cells {
		spec.Cells = append(spec.Cells, rundir.Cell{Name: cell[0]})
		if err := bounded.WriteProgram(dir.Program(cell[0]), "#!/bin/bash\n"+cell[1]); err != nil {
			t.Fatal(err)
		}
	}
	return spec
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// noMPI is the name of an mpirun that isn't there.
const noMPI = "no-mpirun"

// lookOnly returns a LookPath that finds one of the two implementations by its own name.
func lookOnly(name string) func(string) (string, error) {
	return func(string) (string, error) { return exec.LookPath(name) }
}

func TestOneRank(t *testing.T) {
	spec := newSpec(t, 1,
		[2]string{"one", `echo "$GONBATCH_CELL $GONBATCH_DEVICES $A $(pwd)"; printf '<%s>' "$@"; echo`},
		[2]string{"two", `echo "$GONBATCH_RUN_DIR"; echo err >&2`})
	spec.Env, spec.Args = map[string]string{"A": "it's $(x)"}, []string{"-n", "a b", ""}
	var out bytes.Buffer
	if err := (Runner{Out: &out, Err: &out}).Run(t.Context(), staged(t, spec)); err != nil {
		t.Fatal(err)
	}
	want := "one 1 it's $(x) " + spec.WorkDir + "\n<-n><a b><>\n" + spec.RunDir.Path() + "\nerr\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, read(t, spec.RunDir.RankLog(0))); diff != "" {
		t.Errorf("log: %s", diff)
	}
}

func TestRanks(t *testing.T) {
	for _, mpi := range []string{"mpirun.openmpi", "mpirun.mpich", noMPI} {
		t.Run(mpi, func(t *testing.T) {
			spec := newSpec(t, 2,
				[2]string{"one", `echo "$GONBATCH_CELL ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$RANK}} $GONBATCH_DEVICES $A $(pwd)"; printf '<%s>' "$@"; echo`},
				[2]string{"two", `echo "$GONBATCH_CELL" >&2`})
			spec.Env, spec.Args = map[string]string{"A": "it's $(x)"}, []string{"-n", "a b", ":", "two\nlines"}
			var out, errOut bytes.Buffer
			if err := (Runner{Out: &out, Err: &errOut, LookPath: lookOnly(mpi)}).Run(t.Context(), staged(t, spec)); err != nil {
				t.Fatalf("%v\n%s", err, &errOut)
			}
			for rank := range 2 {
				want := "one " + strconv.Itoa(rank) + " 1 it's $(x) " + spec.WorkDir + "\n<-n><a b><:><two\nlines>\ntwo\n"
				if diff := cmp.Diff(want, read(t, spec.RunDir.RankLog(rank))); diff != "" {
					t.Errorf("log of rank %d: %s", rank, diff)
				}
			}
			if diff := cmp.Diff(read(t, spec.RunDir.RankLog(0)), out.String()); diff != "" {
				t.Errorf("what was shown is not rank 0's log: %s", diff)
			}
		})
	}
}

func TestFailure(t *testing.T) {
	for _, tc := range []struct {
		name, mpi, program string
		tasks, code, rank  int
		signal             int
	}{
		{name: "one rank", tasks: 1, program: "exit 7", code: 7},
		{name: "one rank, a code beyond the signals", tasks: 1, program: "exit 255", code: 255},
		{name: "one rank, killed", tasks: 1, program: "kill -9 $$", signal: 9},
		{name: "Open MPI's second rank", mpi: "mpirun.openmpi", tasks: 2, program: `[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exit 7; sleep 20`, code: 7, rank: 1},
		{name: "MPICH's second rank, while the other waits", mpi: "mpirun.mpich", tasks: 2, program: `[ "$PMI_RANK" = 1 ] && exit 7; sleep 97`, code: 7, rank: 1},
		{name: "the second rank, without MPI", mpi: noMPI, tasks: 2, program: `[ "$RANK" = 1 ] && exit 7; sleep 97`, code: 7, rank: 1},
		{name: "the second rank, killed, without MPI", mpi: noMPI, tasks: 3, program: `[ "$RANK" = 1 ] && kill -9 $$; sleep 97`, signal: 9, rank: 1},
		{name: "MPICH's second rank, killed", mpi: "mpirun.mpich", tasks: 2, program: `[ "$PMI_RANK" = 1 ] && kill -9 $$; sleep 97`, signal: 9, rank: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := newSpec(t, tc.tasks, [2]string{"bad", tc.program}, [2]string{"never", "touch ran"})
			var out bytes.Buffer
			err := Runner{Out: &out, Err: &out, LookPath: lookOnly(tc.mpi)}.Run(t.Context(), staged(t, spec))
			var job *submit.JobError
			if !errors.As(err, &job) {
				t.Fatalf("error %v, want a JobError", err)
			}
			want := submit.Status{State: submit.Failed, ExitCode: tc.code, Signal: tc.signal, FailedRank: tc.rank}
			if diff := cmp.Diff(want, job.Status); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Stat(filepath.Join(spec.WorkDir, "ran")); err == nil {
				t.Error("the cell behind the failed one ran")
			}
		})
	}
}

func TestSignalReachesTheWholeGroup(t *testing.T) {
	for _, tc := range []struct {
		name, mpi string
		tasks     int
		cause     error
		want      string
	}{
		{name: "interrupt", tasks: 1, cause: submit.Interrupt{Signal: syscall.SIGINT}, want: "got TERM\n"},
		{name: "cancelled context", tasks: 1, want: "got TERM\n"},
		{name: "ranks", mpi: "mpirun.openmpi", tasks: 2, cause: submit.Interrupt{Signal: syscall.SIGTERM}},
		{name: "ranks of MPICH", mpi: "mpirun.mpich", tasks: 2, cause: submit.Interrupt{Signal: syscall.SIGTERM}},
		{name: "ranks without MPI", mpi: noMPI, tasks: 2, cause: submit.Interrupt{Signal: syscall.SIGTERM}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := newSpec(t, tc.tasks, [2]string{"wait", `trap 'echo got INT; exit 1' INT; trap 'echo got TERM; exit 1' TERM
(trap '' INT TERM; exec sleep 97) & echo $! > "$GONBATCH_RUN_DIR/child"; echo $$ > "$GONBATCH_RUN_DIR/parent"; wait`})
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				for {
					if data, err := os.ReadFile(filepath.Join(spec.RunDir.Path(), "parent")); err == nil && len(data) > 1 {
						cancel(tc.cause)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			}()
			var out bytes.Buffer
			if err := (Runner{Out: &out, Err: &bytes.Buffer{}, LookPath: lookOnly(tc.mpi)}).Run(ctx, staged(t, spec)); err == nil {
				t.Fatal("no error")
			}
			if tc.want != "" && out.String() != tc.want {
				t.Errorf("the program said %q, want %q", &out, tc.want)
			}
			parent, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(spec.RunDir.Path(), "parent"))))
			if err != nil {
				t.Fatal(err)
			}
			if alive(parent) {
				t.Errorf("process %d outlived Run", parent)
			}
			child, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(spec.RunDir.Path(), "child"))))
			if err != nil {
				t.Fatal(err)
			}
			if tc.tasks == 1 && alive(child) {
				t.Errorf("child process %d outlived Run", child)
			}
			_ = syscall.Kill(child, syscall.SIGKILL)
		})
	}
}

// alive reports whether a process is running; it gives the process a moment to end.
func alive(pid int) bool {
	for range 50 {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return false
		}
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// TestNoMPIRun: without mpirun, the ranks find one another by torchrun's variables and a secret
// that is new for each cell, and a line says so.
func TestNoMPIRun(t *testing.T) {
	spec := newSpec(t, 2, [2]string{"one", `env | grep -E '^(RANK|LOCAL_RANK|WORLD_SIZE|LOCAL_WORLD_SIZE|MASTER_ADDR|GONBATCH_RENDEZVOUS_KEY)=' | sort`},
		[2]string{"two", `env | grep GONBATCH_RENDEZVOUS_KEY`})
	var errOut bytes.Buffer
	if err := (Runner{Out: &bytes.Buffer{}, Err: &errOut, LookPath: lookOnly(noMPI), Environ: append(os.Environ(), "RANK=7", "OMPI_COMM_WORLD_RANK=8")}).Run(t.Context(), staged(t, spec)); err != nil {
		t.Fatalf("%v\n%s", err, &errOut)
	}
	if want := "no mpirun on PATH: the ranks connect over TCP\n"; errOut.String() != want {
		t.Errorf("it said %q, want %q", &errOut, want)
	}
	var keys []string
	for rank := range 2 {
		lines := strings.Split(read(t, spec.RunDir.RankLog(rank)), "\n")
		if len(lines) != 8 {
			t.Fatalf("rank %d: %q", rank, lines)
		}
		keys = append(keys, lines[0], lines[6])
		want := fmt.Sprintf("LOCAL_RANK=%[1]d LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 RANK=%[1]d WORLD_SIZE=2", rank)
		if got := strings.Join(lines[1:6], " "); got != want {
			t.Errorf("rank %d has %q, want %q", rank, got, want)
		}
	}
	if keys[0] != keys[2] || keys[1] != keys[3] || keys[0] == keys[1] {
		t.Errorf("the keys of two ranks in two cells: %q", keys)
	}
}

func TestParseFlavour(t *testing.T) {
	for _, tc := range []struct {
		name, version string
		want          flavour
		err           string
	}{
		{name: "Open MPI", version: "mpirun (Open MPI) 4.1.4\n", want: openMPI},
		{name: "MPICH", version: "HYDRA build details:\n    Version: 4.0.2\n", want: mpich},
		{name: "Intel MPI", version: "Intel(R) MPI Library for Linux* OS, Version 2021.9\n", want: mpich},
		{name: "another", version: "LAM 7\nx", err: `neither Open MPI's mpirun nor MPICH's: --version says "LAM 7"; put one of them first on PATH`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := parseFlavour(tc.version)
			if got != tc.want || (err != nil) != (tc.err != "") || err != nil && err.Error() != tc.err {
				t.Errorf("parseFlavour = %q, %v", got, err)
			}
		})
	}
}
