package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// world is a fake SLURM made of files: a job is a file with its state and its script, named by its
// id. Its commands are shell scripts.
type world struct {
	t   *testing.T
	rng *rand.Rand
	dir string
	run rundir.Dir

	// byHand are the jobs that no submit command has queued. A run that has had another job learns
	// of them when they begin.
	byHand map[string]bool
	mu     sync.Mutex
	done   []string // the actions so far, for the message of a failure
}

const (
	worldSbatch = `#!/bin/bash
[ "$1" != --test-only ] || exit 0
cd "$WORLD" && [ ! -e down ] || { echo "sbatch: error: Batch job submission failed: Unable to contact slurm controller" >&2; exit 1; }
until mkdir lock 2> /dev/null; do sleep 0.01; done
grep -lE '^(PENDING|RUNNING|COMPLETING) ' jobs/* 2> /dev/null | sed 's/^/a second job beside /' >> violations
id=$(($(cat last) + 1)); echo $id > last
echo "PENDING ${@: -1}" > new-$id && mv new-$id jobs/$id
rmdir lock
sleep 0.0$((RANDOM % 9))
echo $id
`
	worldScontrol = `#!/bin/bash
cd "$WORLD"; [ ! -e down ] || { echo "scontrol: error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }
show() { read -r state script < jobs/$1 || return; printf 'JobId=%s JobName=x\n   JobState=%s Reason=None Dependency=(null)\n   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\n   Command=%s\n\n' $1 $state "$script"; }
case "$*" in
"show config") echo "ClusterName = here" ;;
"--all show job") for f in jobs/*; do [ -e "$f" ] && show ${f#jobs/}; done; true ;;
*) [ -e jobs/$3 ] && show $3 || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; } ;;
esac
`
	worldSqueue = `#!/bin/bash
cd "$WORLD"; [ ! -e down ] || { echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2; exit 1; }
for f in jobs/*; do [ -e "$f" ] && read -r state script < "$f" && echo "${f#jobs/}|$state|$script"; done; true
`
	worldScancel = `#!/bin/bash
cd "$WORLD"; [ -e jobs/$1 ] || exit 0
sed -i 's/^PENDING/CANCELLED/; s/^RUNNING/COMPLETING/' jobs/$1
`
)

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), byHand: map[string]bool{}}
	for name, text := range map[string]string{"sbatch": worldSbatch, "scontrol": worldScontrol, "squeue": worldSqueue, "scancel": worldScancel,
		"sacct": "#!/bin/sh\necho 'Slurm accounting storage is disabled' >&2; exit 1\n", "srun": "#!/bin/sh\nprintf 'MPI plugin types are...\\n\\tnone\\n\\tpmix\\n'\n"} {
		w.write("bin/"+name, text)
	}
	w.write("last", "0\n")
	w.write("violations", "")
	if err := os.Mkdir(filepath.Join(w.dir, "jobs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(os.Args[0], filepath.Join(w.dir, "bin", "submit")); err != nil {
		t.Fatal(err)
	}
	w.stage()
	return w
}

// stage creates a run that is staged but not queued.
func (w *world) stage() {
	dir, err := rundir.Create(filepath.Join(w.dir, "runs"), "x", time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	w.run = dir
	spec := submit.JobSpec{Name: "x", Nodes: 1, TasksPerNode: 1, MPI: "none", RunDir: dir, WorkDir: w.dir, Cells: []rundir.Cell{{Name: "train"}}}
	manifest := rundir.Manifest{Name: dir.Name(), Scheduler: "slurm", Created: time.Now(), Cells: []rundir.Cell{{Name: "train"}}}
	for path, text := range map[string]string{dir.Program("train"): "", dir.Script(): "#!/bin/sh\n"} {
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o755))
	}
	if err := errors.Join(err, submit.WriteSpec(dir, spec, spec), manifest.Write(dir)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
		w.t.Fatal(err)
	}
}

// submit runs a command, and kills it after limit if that is not 0.
func (w *world) submit(limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	if limit > 0 {
		defer time.AfterFunc(limit, cancel).Stop()
	}
	out, err := bounded.CombinedOutput(w.command(ctx, args...))
	w.note(fmt.Sprintf("submit %s: %v: %s", args[0], err, out))
	return string(out), err
}

func (w *world) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(w.dir, "bin", "submit"), args...)
	cmd.Dir = w.dir
	cmd.Env = append(os.Environ(), "WORLD="+w.dir, "PATH="+filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	return cmd
}

// says fails the test at once if the output of a command lacks a text. The command may fail.
func (w *world) says(want string, words ...string) {
	w.t.Helper()
	if out, _ := w.submit(0, words...); !strings.Contains(out, want) {
		w.t.Fatalf("submit %s does not say %q:\n%s", words, want, out)
	}
}

// begin makes a job start the run.
func (w *world) begin(id string) {
	w.t.Helper()
	if _, err := rundir.AddStart(w.run, "job "+id+" now here"); err != nil {
		w.t.Fatal(err)
	}
	w.set(id, "RUNNING")
}

// await waits until a file exists.
func (w *world) await(path string) {
	for range 3000 { // 30 s
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Errorf("%s does not come", path)
}

func (w *world) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, strings.TrimSpace(text))
}

// jobs returns the states of the jobs that SLURM knows, by id.
func (w *world) jobs() map[string]string {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(w.dir, "jobs", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	all := map[string]string{}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && !strings.Contains(filepath.Base(file), "sed") {
			all[filepath.Base(file)], _, _ = strings.Cut(string(text), " ")
		}
	}
	return all
}

func (w *world) set(id, state string) {
	w.t.Helper()
	if err := rundir.WriteFileAtomic(filepath.Join(w.dir, "jobs", id), []byte(state+" "+w.run.Script()+"\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// lock waits until no command of the run is running, not even the child of a killed command, and
// keeps others out.
func (w *world) lock() (release func()) {
	w.t.Helper()
	lock, err := rundir.AcquireLock(w.t.Context(), w.run.RunLock(), nil)
	if err == nil {
		err = lock.CoverChildren(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := lock.Release(); err != nil {
			w.t.Error(err)
		}
	}
}

// pass lets time pass for one job.
func (w *world) pass(id, state string) {
	end := func(state string, code int) {
		w.set(id, state)
		if err := os.WriteFile(w.run.ExitStatus(), fmt.Appendln(nil, id, code), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	switch {
	case state == "PENDING":
		if _, err := rundir.AddStart(w.run, "job "+id+" now here"); err != nil {
			w.t.Fatal(err)
		}
		w.set(id, "RUNNING")
	case state == "COMPLETING":
		w.set(id, "CANCELLED")
	case state == "RUNNING" && w.rng.IntN(3) == 0:
		end("FAILED", 3)
	case state == "RUNNING":
		w.set(id, "TIMEOUT") // It was killed before it could record anything.
	default:
		if err := os.Remove(filepath.Join(w.dir, "jobs", id)); err != nil { // SLURM forgets it.
			w.t.Fatal(err)
		}
	}
}
