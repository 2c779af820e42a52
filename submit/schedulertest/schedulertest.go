package schedulertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

// Fixture is a scheduler, with a folder and a spec for its jobs.
type Fixture struct {
	Scheduler submit.Scheduler
	// Root is an empty folder that the ranks can see too.
	Root string
	// Spec asks for two ranks.
	Spec submit.JobSpec
}

// Run tests a scheduler. Each test gets a new fixture, whose scheduler must use the given shell.
// self is the path of the submit command, and environ the environment of the programs.
func Run(t *testing.T, self string, environ []string, newFixture func(t *testing.T, shell submit.Shell) Fixture) {
	for _, tc := range []struct {
		name string
		test func(*testing.T, *job)
	}{
		{"ends well", endsWell}, {"fails", fails}, {"is cancelled", isCancelled}, {"is resumed", isResumed}, {"trains on", trainsOn}, {"restarts", restarts}, {"a bug", aBug}, {"is followed", isFollowed}, {"submits a notebook", submitsANotebook},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := &job{t: t, out: &buffer{}, err: &buffer{}}
			shell := submit.Shell{
				Out: j.out, Err: j.err, Environ: environ, Now: time.Now, CommandLine: []string{"submit"}, Self: self,
				Runner: submit.ExecRunner{Env: submit.CleanEnviron(environ)},
			}
			j.fixture = newFixture(t, shell)
			j.runs = &run.Runs{Shell: shell, Root: j.fixture.Root, Schedulers: []submit.Scheduler{j.fixture.Scheduler}}
			tc.test(t, j)
			if t.Failed() {
				t.Logf("out: %s\nerr: %s", j.out, j.err)
			}
		})
	}
}

// whoAmI sets $rank, whichever launcher has started the program.
var whoAmI = cluster.Shell() + "rank=$(rank)\nrank=${rank:-0}\n"

// endsWell: all ranks run every cell, each with its own log, and the run remembers its end.
func endsWell(t *testing.T, j *job) {
	j.stage("one", `echo "one $rank"`, "two", `echo "two $rank"`)
	if err := j.start(); err != nil {
		t.Fatal(err)
	}
	for rank, want := range []string{"one 0\ntwo 0\n", "one 1\ntwo 1\n"} {
		if got := j.read(j.dir.RankLog(rank)); got != want {
			t.Errorf("log of rank %d: %q, want %q", rank, got, want)
		}
	}
	if !strings.Contains(j.out.String(), "one 0\ntwo 0\n") {
		t.Error("rank 0's log was not shown")
	}
	j.wants("completed", func(r report.Run) bool {
		return r.Ended && r.Restarts == 0 && r.Cells == report.Cells{All: 2, Finished: 2}
	})
	if err := j.runs.Resume(t.Context(), j.find(), run.Changes{Job: keep}, run.Manner{}); err == nil || !strings.Contains(err.Error(), "nothing left to do") {
		t.Errorf("it can be resumed: %v", err)
	}
	if c, err := j.runs.Cancel(t.Context(), j.find()); c.Ended != "completed" || err != nil {
		t.Errorf("cancelled after its end: %+v, %v", c, err)
	}
}

// fails: the error names the rank that failed first and quotes its log, and no further cell runs.
// The exit code may come from the other rank, which was killed.
func fails(t *testing.T, j *job) {
	j.stage("bad", `[ $rank = 1 ] || exec sleep 60; echo "panic: it broke"; exit 7`, "never", `touch ran`)
	err := j.start()
	var failed *submit.JobError
	if !errors.As(err, &failed) || failed.Status.State != submit.Failed || failed.Status.ExitCode == 0 || failed.Status.FailedRank != 1 || failed.Cause != "panic: it broke" {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(j.workDir, "ran")); err == nil {
		t.Error("the cell after the failed one ran")
	}
	j.wants("failed", func(r report.Run) bool {
		return r.ExitCode != 0 && strings.Contains(r.Failure, "rank 1: panic: it broke")
	})
}

// isCancelled: a running run cannot be resumed, and ends when it is cancelled.
func isCancelled(t *testing.T, j *job) {
	j.stage("waits", `touch running-$rank; exec sleep 600`)
	ended := make(chan error, 1)
	go func() { ended <- j.start() }()
	j.waitFor("running-0")
	j.waitFor("running-1")
	j.wants("running", func(r report.Run) bool { return !r.Ended })
	if err := j.runs.Resume(t.Context(), j.find(), run.Changes{Job: keep}, run.Manner{}); err == nil || !strings.Contains(err.Error(), "has not ended") {
		t.Errorf("it can be resumed while it runs: %v", err)
	}
	if c, err := j.runs.Cancel(t.Context(), j.find()); c.Ended != "" || err != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	if err := <-ended; err == nil {
		t.Error("who follows the job gets no error")
	}
	j.wants("cancelled", func(r report.Run) bool { return r.Ended })
}

// isResumed: a failed run starts again with the cells that are left, and counts the restart.
func isResumed(t *testing.T, j *job) {
	j.stage("first", `echo first`, "second", `[ "$rank" = 0 ] || exit 0; echo "restart $RESTARTS"; [ "$RESTARTS" = 1 ]`)
	if err := j.start(); err == nil {
		t.Fatal("it did not fail")
	}
	if err := j.start(); err != nil {
		t.Fatalf("resumed: %v", err)
	}
	if got, want := j.read(j.dir.RankLog(0)), "first\nrestart 0\nrestart 1\n"; got != want {
		t.Errorf("log of rank 0: %q, want %q", got, want)
	}
	j.wants("completed", func(r report.Run) bool { return r.Restarts == 1 })
}

// trainsOn: a run that has ended well trains on with more arguments, which follow those of the
// submission: the first cell that trains runs again, and all after it.
func trainsOn(t *testing.T, j *job) {
	j.fixture.Spec.Args = []string{"-first"}
	j.stage("prepare", `[ "$rank" = 0 ] || exit 0; echo "prepare $*"`,
		"train", `[ "$rank" = 0 ] || exit 0; echo "train $*, restart $RESTARTS"; mkdir -p "$TRAINED"; touch "$TRAINED/train"`,
		"plot", `[ "$rank" = 0 ] || exit 0; echo "plot $*"`)
	if err := j.start(); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{{"-max_epochs", "6"}, {"-x"}} {
		if err := j.runs.Resume(t.Context(), j.find(), run.Changes{Job: keep, Args: more}, run.Manner{Follow: true}); err != nil {
			t.Fatal(err)
		}
	}
	want := `prepare -first
train -first, restart 0
plot -first
train -first -max_epochs 6, restart 1
plot -first -max_epochs 6
train -first -x, restart 2
plot -first -x
`
	if got := j.read(j.dir.RankLog(0)); got != want {
		t.Errorf("log of rank 0: %q, want %q", got, want)
	}
	if !strings.Contains(j.err.String(), "training goes on from its newest checkpoint with -max_epochs 6: this isn't the result") {
		t.Errorf("it isn't said what that means: %s", j.err)
	}
	j.stage("once", `exit 0`)
	if err := j.start(); err != nil {
		t.Fatal(err)
	}
	if err := j.runs.Resume(t.Context(), j.find(), run.Changes{Job: keep, Args: []string{"-x"}}, run.Manner{}); err == nil || !strings.Contains(err.Error(), "has no checkpoints") {
		t.Errorf("without checkpoints: %v", err)
	}
}

// dying is a training run whose rank 0 dies at the given updates, one in each start, and then
// succeeds.
func dying(updates string) string {
	return `updates=(` + updates + `); update=${updates[$RESTARTS]}
[ -n "$update" ] || exit 0
[ "$rank" = 0 ] || exec sleep 600
printf '%-20d\n' "$update" > "$PROGRESS"; kill -9 $$`
}

// restarts: a training run whose rank dies restarts by itself.
func restarts(t *testing.T, j *job) {
	j.fixture.Spec.MaxRestarts = 5
	j.stage("train", dying("60 80"))
	if err := j.start(); err != nil {
		t.Fatal(err)
	}
	j.wants("completed", func(r report.Run) bool { return r.Restarts == 2 })
}

// aBug: a training run that dies twice at the same update is not started a third time.
func aBug(t *testing.T, j *job) {
	j.fixture.Spec.MaxRestarts = 5
	j.stage("train", dying("60 60 60"))
	if err := j.start(); err == nil || !strings.Contains(err.Error()+j.err.String(), "died after update 60 in two starts in a row") {
		t.Errorf("error %v", err)
	}
	j.wants("failed", func(r report.Run) bool { return r.Restarts == 1 })
}

// isFollowed: the log of any rank can be followed while it grows, up to the end of the run, and be
// read afterwards. The end is also that of the command that follows.
func isFollowed(t *testing.T, j *job) {
	j.stage("talks", `echo "begin $rank"; touch begun-$rank; until [ -e go ]; do sleep 0.05; done; echo "end $rank"
[ $rank = 1 ] || exec touch ended
until [ -e ended ]; do sleep 0.05; done; exit 3`) // Rank 1 fails, once rank 0 has said everything.
	ended := make(chan error, 1)
	go func() { ended <- j.start() }()
	j.waitFor("begun-0")
	j.waitFor("begun-1")
	followed := map[int]chan error{0: make(chan error, 1), 1: make(chan error, 1)}
	logs := map[int]*buffer{0: {}, 1: {}}
	for rank := range followed {
		go func() { followed[rank] <- j.logs(logs[rank], run.LogRequest{Rank: rank, Follow: true}) }()
		j.waitUntil(fmt.Sprintf("rank %d's log is shown", rank), func() bool { return strings.Contains(logs[rank].String(), fmt.Sprintf("begin %d\n", rank)) })
	}
	if err := os.WriteFile(filepath.Join(j.workDir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("it did not fail")
	}
	for rank := range followed {
		if err := <-followed[rank]; !errors.As(err, new(*submit.JobError)) {
			t.Errorf("following rank %d: error %v", rank, err)
		}
		want := fmt.Sprintf("begin %d\nend %d\n", rank, rank)
		var again buffer
		if err := j.logs(&again, run.LogRequest{Rank: rank}); err != nil {
			t.Errorf("log of rank %d after the end: %v", rank, err)
		}
		for _, got := range []string{logs[rank].String(), again.String()} {
			if noise.ReplaceAllString(got, "") != want {
				t.Errorf("log of rank %d: %q, want %q", rank, got, want)
			}
		}
	}
	if err := j.logs(&buffer{}, run.LogRequest{Rank: 2}); !errors.As(err, new(submit.UsageError)) {
		t.Errorf("log of rank 2: error %v", err)
	}
}

const notebook = `{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
	{"id": "a", "cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null, "source": "var word = \"hello\""},
	{"id": "b", "cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null, "source": "%%\nfmt.Println(word, os.Args[1:])"},
	{"id": "c", "cell_type": "code", "metadata": {}, "outputs": [], "execution_count": null, "source": "!echo once"}]}`

// submitsANotebook: a notebook becomes a run with all files in it, whose programs run on each rank
// and whose shell commands run once.
func submitsANotebook(t *testing.T, j *job) {
	file := filepath.Join(t.TempDir(), "note.ipynb")
	if err := os.WriteFile(file, []byte(notebook), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := j.fixture.Spec
	spec.Args = []string{"x", "1"}
	if err := j.runs.Submit(context.WithoutCancel(t.Context()), run.Request{Path: file, Job: spec, Scheduler: j.fixture.Scheduler, Manner: run.Manner{Follow: true}}); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(j.fixture.Root, "note-*"))
	if err != nil || len(found) != 1 {
		t.Fatalf("runs %q, %v", found, err)
	}
	j.dir = rundir.At(found[0])
	for rank, want := range []string{"hello [x 1]\nonce\n", "hello [x 1]\n"} {
		if got := j.read(j.dir.RankLog(rank)); got != want {
			t.Errorf("log of rank %d: %q, want %q", rank, got, want)
		}
	}
	j.wants("completed", func(r report.Run) bool {
		return r.Ended && r.Cells == report.Cells{All: 2, Finished: 2}
	})
}

// job is a run whose programs are shell scripts.
type job struct {
	t        *testing.T
	fixture  Fixture
	runs     *run.Runs
	out, err *buffer
	dir      rundir.Dir
	workDir  string
}

// stage creates a run with cells, given as names and scripts.
func (j *job) stage(cells ...string) {
	j.t.Helper()
	dir, err := rundir.Create(j.fixture.Root, "job", time.Now())
	if err != nil {
		j.t.Fatal(err)
	}
	j.dir, j.workDir = dir, j.t.TempDir()
	spec := j.fixture.Spec
	spec.Name, spec.RunDir, spec.WorkDir = "job", dir, j.workDir
	for i := 0; i < len(cells); i += 2 {
		spec.Cells = append(spec.Cells, rundir.Cell{Name: cells[i]})
		variables := strings.NewReplacer("$PROGRESS", dir.Progress(), "$TRAINED", dir.Trained(), "$RESTARTS", "$"+rundir.EnvRestarts)
		text := "#!/bin/bash\n" + whoAmI + variables.Replace(cells[i+1]) + "\n"
		if err := bounded.WriteProgram(dir.Program(cells[i]), text); err != nil {
			j.t.Fatal(err)
		}
	}
	m := rundir.Manifest{Name: dir.Name(), Scheduler: j.fixture.Scheduler.Name(), Cells: spec.Cells, Created: time.Now()}
	if err := errors.Join(submit.WriteSpec(dir, spec, spec), m.Write(dir), os.Symlink(j.runs.Self, dir.Submit())); err != nil {
		j.t.Fatal(err)
	}
}

// keep resumes a job unchanged.
func keep(*submit.JobSpec) error { return nil }

// start starts or resumes the run, and waits for its end.
func (j *job) start() error {
	return j.runs.Resume(context.WithoutCancel(j.t.Context()), j.find(), run.Changes{Job: keep}, run.Manner{Follow: true})
}

func (j *job) find() run.Run {
	r, err := j.runs.Find(j.dir.Name())
	if err != nil {
		j.t.Error(err)
	}
	return r
}

// limit is how long any step may take on a busy machine.
const limit = 3 * time.Minute

// wants waits until the run has a state and the rest of its report satisfies holds.
func (j *job) wants(state string, holds func(report.Run) bool) {
	j.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		r, err := j.runs.Report(j.t.Context(), j.find())
		switch {
		case err == nil && r.State == state && holds(r):
			return
		case time.Now().After(deadline):
			j.t.Errorf("the run is %+v, %v; want it %s", r, err, state)
			return
		}
	}
}

// waitFor waits for a file in the job's folder.
func (j *job) waitFor(name string) {
	j.t.Helper()
	j.waitUntil("there is a file "+name, func() bool {
		_, err := os.Stat(filepath.Join(j.workDir, name))
		return err == nil
	})
}

// waitUntil waits until something holds, which what describes.
func (j *job) waitUntil(what string, holds func() bool) {
	j.t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if holds() {
			return
		}
	}
	j.t.Fatalf("waited %v until %s", limit, what)
}

// logs prints a log of the run to out.
func (j *job) logs(out *buffer, req run.LogRequest) error {
	runs := *j.runs
	runs.Out = out
	return runs.Log(context.WithoutCancel(j.t.Context()), j.find(), req)
}

// noise matches lines that a launcher adds to a log.
var noise = regexp.MustCompile(`(?m)^(srun|slurmstepd).*\n`)

func (j *job) read(path string) string {
	j.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		j.t.Error(err)
	}
	return noise.ReplaceAllString(string(text), "")
}
