package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"gonbatch/checkpoint/folder"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// still is a scheduler whose jobs stay as their manifests have them.
type still struct{ submit.Scheduler }

func (still) Name() string { return "still" }

func (still) Status(_ context.Context, job submit.Job) (submit.Status, error) {
	m, err := rundir.ReadManifest(job.Dir)
	return submit.RecordedStatus(m), err
}

// pruned is a run of the test, and what must hold for it.
type pruned struct {
	dir           rundir.Dir
	name          string
	age           time.Duration
	state         submit.State
	hasCheckpoint bool
}

// TestPrune: whatever runs there are, and whatever is asked for, what Prune removes is what it
// listed; it has ended, matches, and isn't the only one with a checkpoint.
func TestPrune(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 9))
		now := time.Now()
		rs := &Runs{Shell: submit.Shell{Err: io.Discard, Now: func() time.Time { return now }}, Root: t.TempDir(), Schedulers: []submit.Scheduler{still{}}}
		var runs []pruned
		for i := range 8 {
			runs = append(runs, newPruned(t, rs.Root, random, now.Add(-time.Duration(8-i)*24*time.Hour)))
		}
		p := Pruning{Keep: random.IntN(3), Older: time.Duration(random.IntN(6)) * 24 * time.Hour}
		if random.IntN(2) == 0 {
			p.States = []string{string(submit.Failed)}
		}
		if p.Keep == 0 && p.Older == 0 && p.empty() {
			p.Name = "-"
		}
		listed, err := rs.Prune(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		p.Sure = true
		removed, err := rs.Prune(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(listed.Runs) != fmt.Sprint(removed.Runs) {
			t.Errorf("seed %d: listed\n%v\nremoved\n%v", seed, listed.Runs, removed.Runs)
		}
		left := map[string]bool{}
		dirs, err := rundir.List(rs.Root)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range dirs {
			left[d.Name()] = true
		}
		for i, r := range runs {
			newer, kept := 0, false
			for j, other := range runs {
				if other.name == r.name && j > i {
					newer++
				}
				kept = kept || other.name == r.name && other.hasCheckpoint && left[other.dir.Name()]
			}
			matches := r.age >= p.Older && newer >= p.Keep && (len(p.States) == 0 || r.state == submit.Failed) && r.state.Ended()
			switch gone := !left[r.dir.Name()]; {
			case gone && !matches:
				t.Errorf("seed %d: %+v is gone; asked for %+v", seed, r, p)
			case !gone && matches && !r.hasCheckpoint:
				t.Errorf("seed %d: %+v is still there; asked for %+v", seed, r, p)
			case r.hasCheckpoint && !kept:
				t.Errorf("seed %d: no checkpoint of %s is left; asked for %+v", seed, r.name, p)
			}
		}
		if hidden, _ := filepath.Glob(filepath.Join(rs.Root, ".gonbatch-*")); len(hidden) > 0 {
			t.Errorf("seed %d: %q are left", seed, hidden)
		}
	}
}

// newPruned makes a random run that was created at a time.
func newPruned(t *testing.T, root string, random *rand.Rand, created time.Time) pruned {
	t.Helper()
	r := pruned{
		name: []string{"a", "b"}[random.IntN(2)], age: time.Since(created), hasCheckpoint: random.IntN(2) == 0,
		state: []submit.State{submit.Completed, submit.Failed, submit.Running, submit.Pending}[random.IntN(4)],
	}
	dir, err := rundir.Create(root, r.name, created)
	if err != nil {
		t.Fatal(err)
	}
	r.dir = dir
	m := rundir.Manifest{Name: dir.Name(), Scheduler: "still", JobID: "7", State: string(r.state), Created: created}
	if r.state.Ended() {
		m.Ended = &created
	}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if !r.hasCheckpoint {
		return r
	}
	draft, err := folder.NewDraft(filepath.Join(dir.Checkpoints(), "train"), 3)
	if err == nil {
		err = errors.Join(draft.Write("weights", func(w io.Writer) error { _, err := io.WriteString(w, "w"); return err }), draft.Commit(folder.Manifest{}))
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestPruneResumed: a run that was started again after it was looked at stays.
func TestPruneResumed(t *testing.T) {
	rs := &Runs{Shell: submit.Shell{Err: io.Discard, Now: time.Now}, Root: t.TempDir(), Schedulers: []submit.Scheduler{still{}}}
	dir, err := rundir.Create(rs.Root, "a", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ended := time.Now()
	m := rundir.Manifest{Name: dir.Name(), Scheduler: "still", JobID: "7", State: string(submit.Failed), Ended: &ended}
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	r, err := rs.open(dir)
	if err != nil {
		t.Fatal(err)
	}
	m.JobID, m.State, m.Ended = "8", string(submit.Pending), nil
	if err := m.Write(dir); err != nil {
		t.Fatal(err)
	}
	if err := rs.remove(t.Context(), r); err == nil {
		t.Error("the run was removed")
	}
	if _, err := rundir.ReadManifest(dir); err != nil {
		t.Error(err)
	}
}

// asked is a scheduler that can be asked about jobs that a run doesn't know.
type asked struct {
	still
	live submit.JobID
	err  error
}

func (a asked) Survey(context.Context, ...submit.Job) submit.Survey { return a }

func (a asked) Find(context.Context, rundir.Dir, []string) (submit.Job, error) {
	return submit.Job{}, a.err
}

func (a asked) Live(_ context.Context, dir rundir.Dir) ([]submit.Job, error) {
	if a.live == "" {
		return nil, a.err
	}
	return []submit.Job{{ID: a.live, Dir: dir}}, a.err
}

// TestPruneAsks: a run stays if its scheduler has a job of it, or can't say so.
func TestPruneAsks(t *testing.T) {
	down := errors.New("no controller")
	old := time.Now().Add(-time.Hour)
	for _, tc := range []struct {
		name      string
		m         rundir.Manifest
		scheduler asked
		want      string
	}{
		{name: "completed", m: rundir.Manifest{JobID: "7", State: "completed", Ended: &old}},
		{name: "requeued", m: rundir.Manifest{JobID: "7", State: "completed", Ended: &old}, scheduler: asked{live: "7"}, want: "it has a job 7 that has not ended"},
		{name: "failed, and the controller is down", m: rundir.Manifest{JobID: "7", State: "failed", Ended: &old}, scheduler: asked{err: down}, want: "nobody can say whether it has a job: no controller"},
		{name: "staged", m: rundir.Manifest{}},
		{name: "staged, and the controller is down", m: rundir.Manifest{}, scheduler: asked{err: down}, want: "nobody can say whether it is queued: no controller"},
		{name: "queued by hand", m: rundir.Manifest{}, scheduler: asked{live: "9"}, want: "it has a job 9 that has not ended"},
		{name: "lost", m: rundir.Manifest{JobID: "7", State: string(submit.Lost), Ended: &old}},
	} {
		for _, sure := range []bool{false, true} {
			rs := &Runs{Shell: submit.Shell{Err: io.Discard, Now: time.Now}, Root: t.TempDir(), Schedulers: []submit.Scheduler{tc.scheduler}}
			dir, err := rundir.Create(rs.Root, "a", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			tc.m.Name, tc.m.Scheduler = dir.Name(), "still"
			if err := tc.m.Write(dir); err != nil {
				t.Fatal(err)
			}
			got, err := rs.Prune(t.Context(), Pruning{Filter: Filter{Name: "a"}, Sure: sure})
			if err != nil || len(got.Runs) != 1 || got.Runs[0].Kept != tc.want {
				t.Errorf("%s, sure %t: %+v, %v; want %q", tc.name, sure, got.Runs, err, tc.want)
			}
			if _, err := rundir.ReadManifest(dir); (err == nil) != (tc.want != "" || !sure) {
				t.Errorf("%s, sure %t: %v", tc.name, sure, err)
			}
		}
	}
}

// TestPruneByUse: what was resumed or has ended lately isn't old.
func TestPruneByUse(t *testing.T) {
	now := time.Now()
	old, lately := now.Add(-40*24*time.Hour), now.Add(-time.Hour)
	for want, m := range map[time.Time]rundir.Manifest{
		old: {Created: old}, lately: {Created: old, Ended: &lately}, lately.Add(time.Minute): {Created: old, Resumed: []rundir.Resumption{{Time: lately.Add(time.Minute)}}},
	} {
		if got := lastUsed(m); !got.Equal(want) {
			t.Errorf("%+v: %s, want %s", m, got, want)
		}
	}
}
