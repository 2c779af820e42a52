package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/internal/bounded"
)

// step performs a random action.
func (w *world) step() {
	name, down := w.run.Name(), filepath.Join(w.dir, "down")
	soon := time.Duration(w.rng.IntN(120)) * time.Millisecond
	// submit may be killed, or fail: only its effects matter.
	submit := func(limit time.Duration, args ...string) func() {
		return func() { _, _ = w.submit(limit, args...) }
	}
	deeds := []struct {
		name string
		do   func()
	}{
		{"status", submit(0, "status")},
		{"status RUN", submit(0, "status", name)},
		{"cancel", submit(0, "cancel", name)},
		{"cancel, killed", submit(soon, "cancel", name)},
		{"resume", submit(20*time.Second, "resume", name)},
		{"resume, killed", submit(soon, "resume", name)},
		{"three resumes", func() {
			var all sync.WaitGroup
			for range 3 {
				all.Go(submit(20*time.Second, "resume", name))
			}
			for id, state := range w.jobs() { // Meanwhile the last job may disappear.
				if state == "COMPLETING" {
					w.pass(id, state)
				}
			}
			all.Wait()
		}},
		{"sbatch by hand", func() {
			defer w.lock()() // Otherwise it might be queued alongside the children of a killed command.
			for _, state := range w.jobs() {
				if state == "PENDING" || state == "RUNNING" || state == "COMPLETING" {
					return // The batch script itself prevents a second job.
				}
			}
			cmd := exec.CommandContext(w.t.Context(), filepath.Join(w.dir, "bin", "sbatch"), w.run.Script())
			cmd.Env = append(os.Environ(), "WORLD="+w.dir)
			out, _ := bounded.Output(cmd) // The controller may be down.
			w.byHand[strings.TrimSpace(string(out))] = true
		}},
		{"controller away or back", func() {
			if os.Remove(down) != nil {
				w.write("down", "")
			}
		}},
	}
	if w.rng.IntN(2) == 0 {
		for id, state := range w.jobs() {
			w.note("time passes for " + id + ": " + state)
			w.pass(id, state)
			return
		}
	}
	deed := deeds[w.rng.IntN(len(deeds))]
	w.note(deed.name)
	deed.do()
}

// TestRandomCommands: whichever commands run in whichever order, killed or not, a run never has two
// jobs at once; it always knows its job, and can be resumed as soon as that has ended.
func TestRandomCommands(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			for range 40 {
				w.step()
			}
			w.lock()()
			_ = os.Remove(filepath.Join(w.dir, "down"))
			defer func() {
				if t.Failed() {
					t.Logf("%s", strings.Join(w.done, "\n"))
				}
			}()
			for id, state := range w.jobs() {
				if state == "PENDING" && !w.byHand[id] || state == "RUNNING" {
					if out, err := w.submit(0, "status", w.run.Name()); err != nil || !strings.Contains(out, "job:           "+id) || !strings.Contains(out, strings.ToLower(state)) {
						t.Errorf("job %s is %s, and status says %v\n%s", id, state, err, out)
					}
				}
			}
			for _, active := range []string{"PENDING", "RUNNING", "COMPLETING"} {
				for id, state := range w.jobs() {
					if state == active {
						w.set(id, "FAILED")
					}
				}
			}
			if out, err := w.submit(30*time.Second, "resume", w.run.Name()); err != nil {
				t.Errorf("the run cannot be resumed: %v\n%s", err, out)
			}
			if text, err := os.ReadFile(filepath.Join(w.dir, "violations")); err != nil || len(text) > 0 {
				t.Errorf("%s%v", text, err)
			}
		})
	}
}
