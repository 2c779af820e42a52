package rank_test

import (
	"bytes"
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
	"github.com/google/go-cmp/cmp/cmpopts"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/rank"
)

// asRank makes the test's process a rank with that grace time, and asParent one that starts a rank.
const (
	asRank   = "TEST_AS_RANK"
	asParent = "TEST_AS_PARENT"
)

func TestMain(m *testing.M) {
	grace, isRank := os.LookupEnv(asRank)
	parent, isParent := os.LookupEnv(asParent)
	_, _ = os.Unsetenv(asRank), os.Unsetenv(asParent)
	switch {
	case isParent:
		number, err := strconv.Atoi(parent)
		if err != nil {
			panic(err)
		}
		beParent(syscall.Signal(number))
	case isRank:
		shell := submit.Shell{Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Now: time.Now, CommandLine: os.Args}
		limit, err := time.ParseDuration(grace)
		if err != nil {
			panic(err)
		}
		os.Exit(rank.Runner{Shell: shell, Grace: limit}.Run(os.Args[2:]))
	default:
		os.Exit(m.Run())
	}
}

// newRun creates a run whose cell "one" is a script of bash.
func newRun(t *testing.T, tasks int, script string) rundir.Dir {
	t.Helper()
	dir, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	spec := submit.JobSpec{Nodes: 1, TasksPerNode: tasks, WorkDir: t.TempDir(), Args: []string{"a b", ""}, Cells: []rundir.Cell{
		{Name: "one", Env: map[string]string{"V": "cell's"}}, {Name: "shell", Shell: true, Once: true},
	}}
	for _, cell := range spec.Cells {
		err = errors.Join(err, bounded.WriteProgram(dir.CellProgram(cell), "#!/bin/bash\n"+script))
	}
	if err := errors.Join(err, submit.WriteSpec(dir, spec, spec)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newRank returns the command that runs rank 0 of the cell "one".
func newRank(dir rundir.Dir) *exec.Cmd {
	cmd := exec.Command(os.Args[0], submit.RankName, dir.Path(), "one")
	env := rundir.Env{Dir: dir, Start: 1, Stopped: dir.Stopped("1"), RequeueCode: rundir.RequeueCode}
	cmd.Env = append(os.Environ(), asRank+"=60s")
	for _, v := range env.Vars() {
		cmd.Env = append(cmd.Env, v.String())
	}
	return cmd
}

func waitFor(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s", path)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// TestEnds: a rank ends with its program's code, unless it has saved, and records how it ended.
func TestEnds(t *testing.T) {
	t.Parallel()
	const waits = "for ((i = 0; i < 6000; i++)); do sleep 0.01; done"
	for name, tc := range map[string]struct {
		program string
		signal  syscall.Signal
		code    int
		end     rundir.End
		stopped bool
		says    string
	}{
		"well":                         {program: "exit 0"},
		"failed":                       {program: "exit 7", code: 7, end: rundir.End{Code: 7}},
		"killed":                       {program: "kill -9 $$", code: 137, end: rundir.End{Code: 137}},
		"as if it had saved":           {program: "exit 75", code: 1, end: rundir.End{Code: 1}, says: rundir.Unasked},
		"saved":                        {program: "trap 'exit 75' TERM; touch $GONBATCH_RUN_DIR/runs; " + waits, signal: syscall.SIGUSR1, end: rundir.End{Code: 75, Told: true, Saved: true}, stopped: true},
		"told, and saved nothing":      {program: "touch $GONBATCH_RUN_DIR/runs; " + waits, signal: syscall.SIGUSR1, code: 143, end: rundir.End{Code: 143, Told: true}},
		"told, and done":               {program: "trap 'exit 0' TERM; touch $GONBATCH_RUN_DIR/runs; " + waits, signal: syscall.SIGTERM, end: rundir.End{Told: true}},
		"saved as another was told to": {program: `: > "$GONBATCH_STOPPED"; exit 75`, end: rundir.End{Code: 75, Saved: true}, stopped: true},
		"interrupted":                  {program: "kill -INT $$; exit 3", code: 130, end: rundir.End{Code: 130}},
		"a signal of its own":          {program: "trap 'exit 4' USR1; kill -USR1 $$; exit 3", code: 4, end: rundir.End{Code: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := newRun(t, 1, tc.program)
			cmd := newRank(dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if tc.signal != 0 {
				waitFor(t, filepath.Join(dir.Path(), "runs"))
				_ = cmd.Process.Signal(tc.signal)
			}
			_ = cmd.Wait() // The test checks its code.
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			ends, err := rundir.ReadEnds(dir, 1, "one")
			if diff := cmp.Diff(map[int]rundir.End{0: tc.end}, ends, cmpopts.IgnoreFields(rundir.End{}, "Host", "Began", "Ended", "Memory", "CPU")); diff != "" || err != nil {
				t.Errorf("%v, %s", err, diff)
			}
			host, err := os.Hostname()
			if e := ends[0]; err != nil || e.Host != host || e.Memory < 1<<20 || e.Memory > 1<<30 || e.CPU <= 0 || e.Began.IsZero() || e.Ended.Before(e.Began) {
				t.Errorf("%v, %+v", err, e)
			}
			if _, err := os.Stat(dir.Stopped("1")); (err == nil) != tc.stopped {
				t.Errorf("the mark that it has saved: %v", err)
			}
			if log := read(t, dir.RankLog(0)); log != tc.says && log != tc.says+"\n" {
				t.Errorf("log %q, want %q", log, tc.says)
			}
		})
	}
}

// TestProgram: the program has the user's variables, its own arguments, folder and log, and nothing
// to read.
func TestProgram(t *testing.T) {
	dir := newRun(t, 4, `printf '<%s>' "$RANK" "$V" "$PATH" "$GONBATCH_CELL" "${!GONBATCH_ENV_@}" "$@"; cat; pwd`)
	cmd := newRank(dir)
	cmd.Env = append(cmd.Env, "RANK=3", "WORLD_SIZE=4", "GONBATCH_ENV_V=job's", "GONBATCH_ENV_PATH=/bin:odd path")
	cmd.Stdin = strings.NewReader("for nobody")
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v, %q", err, out)
	}
	spec, err := submit.ReadSpec(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := read(t, dir.RankLog(3)), "<3><cell's></bin:odd path><one><a b><>"+spec.WorkDir+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRefuses: a call that cannot work says why, where the launcher's messages are.
func TestRefuses(t *testing.T) {
	for want, change := range map[string]func(dir rundir.Dir, cmd *exec.Cmd){
		"want the run directory and a cell":   func(_ rundir.Dir, cmd *exec.Cmd) { cmd.Args = cmd.Args[:3] },
		"has no cell \"two\"":                 func(_ rundir.Dir, cmd *exec.Cmd) { cmd.Args[3] = "two" },
		"no variable has this process's rank": func(_ rundir.Dir, cmd *exec.Cmd) {},
		"RANK is \"x\", not a number":         func(_ rundir.Dir, cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "RANK=x", "WORLD_SIZE=2") },
		"logs/rank-1.log: is a directory": func(d rundir.Dir, cmd *exec.Cmd) {
			_ = os.Mkdir(d.RankLog(1), 0o700)
			cmd.Env = append(cmd.Env, "RANK=1", "WORLD_SIZE=2")
		},
		"job.json: no such file or directory":    func(d rundir.Dir, _ *exec.Cmd) { _ = os.Remove(d.Spec()) },
		"version 99, this version of submit rea": func(d rundir.Dir, _ *exec.Cmd) { _ = os.WriteFile(d.Spec(), []byte(`{"Version": 99}`), 0o600) },
	} {
		dir := newRun(t, 2, "exit 0")
		cmd := newRank(dir)
		change(dir, cmd)
		out, _ := cmd.CombinedOutput() // The test checks its code.
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.Contains(string(out), want) {
			t.Errorf("exit code %d, want %q in:\n%s", code, want, out)
		}
	}
}

// TestCannotStart: a program that cannot be started is a failure of its own.
func TestCannotStart(t *testing.T) {
	for code, change := range map[int]func(path string) error{
		126: func(path string) error { return os.Chmod(path, 0o600) },
		127: os.Remove,
	} {
		dir := newRun(t, 1, "exit 0")
		if err := change(dir.Program("one")); err != nil {
			t.Fatal(err)
		}
		cmd := newRank(dir)
		_ = cmd.Run() // The test checks its code.
		ends, err := rundir.ReadEnds(dir, 1, "one")
		if got := cmd.ProcessState.ExitCode(); got != code || ends[0].Code != code || err != nil || !strings.Contains(read(t, dir.RankLog(0)), "gonbatch: cell one: fork/exec") {
			t.Errorf("exit code %d, %+v, %v, want %d; log %q", got, ends, err, code, read(t, dir.RankLog(0)))
		}
	}
}

// TestNoRecord: a rank whose end cannot be recorded says why.
func TestNoRecord(t *testing.T) {
	for program, code := range map[string]int{"exit 0": 0, "exit 7": 7} {
		dir := newRun(t, 1, program)
		if err := os.WriteFile(dir.Ends(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := newRank(dir)
		_ = cmd.Run() // The test checks its code.
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(read(t, dir.RankLog(0)), "gonbatch: record the end of rank 0: mkdir ") {
			t.Errorf("%s: exit code %d, want %d; log %q", program, got, code, read(t, dir.RankLog(0)))
		}
	}
}

// TestAborts: a rank that fails tells MPICH's mpirun once the failure is reported.
func TestAborts(t *testing.T) {
	for _, code := range []int{0, 3} {
		dir := newRun(t, 1, fmt.Sprintf("exit %d", code))
		if _, err := (rundir.Failure{Error: "boom"}).Write(dir); err != nil {
			t.Fatal(err)
		}
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd := newRank(dir)
		cmd.ExtraFiles = []*os.File{writer}
		cmd.Env = append(cmd.Env, "PMI_FD=3")
		_ = cmd.Run() // The test checks what it says.
		_ = writer.Close()
		var said bytes.Buffer
		_, _ = said.ReadFrom(reader)
		want := "cmd=abort exitcode=3\n"
		if code == 0 {
			want = ""
		}
		if said.String() != want {
			t.Errorf("exit code %d: %q, want %q", code, &said, want)
		}
	}
}

// TestShellCommand: a shell command doesn't save, and what it has started is told to stop too.
func TestShellCommand(t *testing.T) {
	dir := newRun(t, 1, "trap 'exit 75' TERM; touch $GONBATCH_RUN_DIR/runs; sleep 97")
	cmd := newRank(dir)
	cmd.Args[3] = "shell"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, filepath.Join(dir.Path(), "runs"))
	begin := time.Now()
	for tick := time.NewTicker(100 * time.Millisecond); cmd.ProcessState == nil; <-tick.C {
		_ = cmd.Process.Signal(syscall.SIGUSR1)
		if time.Since(begin) > 500*time.Millisecond {
			_ = cmd.Wait()
		}
	}
	ends, err := rundir.ReadEnds(dir, 1, "shell")
	if code := cmd.ProcessState.ExitCode(); code != 1 || ends[0].Code != 1 || ends[0].Saved || err != nil || time.Since(begin) > time.Minute {
		t.Errorf("exit code %d, %+v, %v, after %v", code, ends, err, time.Since(begin))
	}
}
