package job

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

// world is a simple model of what a Machine acts on: a run directory, a scheduler, and ranks. It
// knows what really happened, and what of that is recorded.
type world struct {
	t      *testing.T
	random *rand.Rand
	plan   Plan
	story  []string

	// What is recorded: the number of starts, the cells that succeeded, the deaths, and the end.
	starts   int
	finished map[int]bool
	deaths   []rundir.Death
	recorded *int

	// What is true: the cells that ran well on all ranks, and how often a start was asked for.
	succeeded map[int]bool
	// unmarked is a cell whose success could not be recorded in this start; -1 if there is none.
	unmarked int

	// This start: whether the scheduler is ending it, and why, and whether it answers.
	ending, silent, full bool
	reason               string
	number               int
	stopped, terminated  bool
	tells, unanswered    int
	running, looks       int
	late                 bool
	requeued             bool
	jobRestarts          int
}

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.story, "\n"))
}

var errFull = errors.New("no space left on device")

// do does what a machine wants, and returns the answer, like the driver.
func (w *world) do(e Effect) Event {
	switch e.Kind {
	case Tell:
		if w.tells++; w.tells > 1 || w.running < 0 || w.plan.Cells[w.running].Once {
			w.fail("it tells the ranks to stop for the %d. time; cell %d runs", w.tells, w.running)
		}
	case FindOther:
		return [...]Other{{}, {}, {}, {}, {}, {}, {ID: "11", Ending: true}, {ID: "11"}}[w.random.IntN(8)]
	case AddStart:
		w.unanswered = 0
		if w.full {
			return Started{Err: errFull}
		}
		w.starts++
		w.number = w.starts
		w.recorded = nil
		w.jobRestarts++
		return Started{Number: w.number, Restarts: w.jobRestarts - 1}
	case Setup:
		w.unanswered = 0
		switch w.random.IntN(20) {
		case 0:
			return SetUp{Code: 1 + w.random.IntN(140)}
		case 1:
			return SetUp{Err: errors.New("no bash")}
		}
		return SetUp{}
	case Check:
		w.unanswered = 0
		return Checked{Superseded: w.starts > w.number, Finished: w.finished[e.Cell]}
	case Launch:
		w.launch(e.Cell)
	case Ask:
		word := Word{State: "RUNNING", Reason: "None", Superseded: w.starts > w.number}
		if w.ending {
			word.State, word.Reason = completing, w.reason
		}
		w.unanswered++
		if w.silent {
			word.State, word.Reason = "", ""
		} else {
			w.unanswered = 0
		}
		if w.unanswered > 2 {
			w.fail("it asks a silent scheduler again and again")
		}
		return word
	case Look:
		w.unanswered = 0
		if w.looks++; w.looks > 2*maxLooks {
			w.fail("it looks for ever")
		}
		if w.late && w.chance(30) {
			w.late = false
			w.succeeded[e.Cell] = true
			return Ended{All: true}
		}
		return Ended{}
	case Mark:
		if w.starts > w.number {
			w.fail("a start that is superseded marks cell %d", e.Cell)
		}
		if !w.succeeded[e.Cell] {
			w.fail("cell %d is marked, and has not succeeded", e.Cell)
		}
		if w.full {
			w.unmarked = e.Cell
			return Marked{errFull}
		}
		w.finished[e.Cell] = true
		return Marked{}
	case AddDeath:
		d := Died{Death: rundir.Death{Start: w.number, Cell: w.plan.Cells[e.Cell].Name, Update: int64(w.random.IntN(4))}, Trains: w.chance(80)}
		if w.full {
			d.Err = errFull
		} else if d.Trains {
			if n := len(w.deaths); n > 0 {
				d.Repeats = d.Death.Repeats(w.deaths[n-1])
			}
			w.deaths = append(w.deaths, d.Death)
		}
		return d
	case Requeue:
		if w.starts > w.number {
			w.fail("a start that is superseded queues the job again")
		}
		if w.silent || w.chance(20) {
			return Requeued{errors.New("not allowed")}
		}
		w.requeued = true
		return Requeued{}
	}
	return nil
}

// launch begins a cell.
func (w *world) launch(cell int) {
	switch {
	case w.finished[cell]:
		w.fail("cell %d runs again though it has succeeded", cell)
	case w.unmarked == cell:
		w.fail("cell %d runs again in the start in which it succeeded", cell)
	case w.stopped:
		w.fail("cell %d begins though the job was told to stop", cell)
	case w.starts > w.number:
		w.fail("cell %d begins in a start that is superseded", cell)
	}
	w.running, w.tells, w.unanswered, w.looks, w.late = cell, 0, 0, 0, false
}

// end ends the running cell: its ranks end well, fail, save, leave no word, or have not begun, and
// the launcher's code may be a lie.
func (w *world) end() Event {
	cell := w.running
	w.running = -1
	switch w.random.IntN(10) {
	case 8:
		return Ended{Code: 1 + w.random.IntN(140), NotBegun: true}
	case 9:
		return Ended{Code: 1, NotBegun: true, Err: ErrBlocked}
	case 0:
		return Ended{Err: errors.New("srun is not on PATH")}
	case 1:
		w.late = w.chance(50) // All is well, and a rank's record arrives late.
		return Ended{Code: 0, All: false}
	case 2, 3:
		return Ended{Code: 1 + w.random.IntN(140)}
	case 4:
		if w.stopped && !w.plan.Cells[cell].Once {
			return Ended{Code: 0, Saved: true, All: true}
		}
	}
	w.succeeded[cell] = true
	return Ended{Code: 0, All: true}
}

// signals are the signals that wait for the machine.
func (w *world) signal(m *Machine, near bool) {
	w.story = append(w.story, fmt.Sprintf("signal, near the time limit: %v", near))
	for _, e := range m.Next(Stop{Near: near}) {
		w.story = append(w.story, fmt.Sprintf("  %+v", e))
		w.do(e)
	}
	w.stopped, w.terminated = true, w.terminated || !near
}

// happen makes something happen to the world with a chance in percent.
func (w *world) happen(percent int) {
	if !w.chance(percent) {
		return
	}
	what := w.random.IntN(5)
	w.story = append(w.story, "happens: "+[]string{"the disk is full", "it has room", "the scheduler is silent", "the scheduler ends the start", "another start"}[what])
	switch what {
	case 0:
		w.full = true
	case 1:
		w.full = false
	case 2:
		w.silent = !w.silent
	case 3:
		w.ending, w.reason = true, []string{"None", "TimeLimit", "Preempted"}[w.random.IntN(3)]
	case 4:
		if w.running >= 0 { // Later, it is between a question and what follows, where nothing helps.
			w.starts++
		}
	}
}

// start runs one start of the job, and returns its exit code.
func (w *world) start() int {
	w.ending, w.silent, w.stopped, w.terminated, w.unmarked, w.running, w.number, w.requeued = false, false, false, false, -1, -1, 0, false
	m := NewMachine(w.plan)
	var event Event = Begin{}
	launches := 0
	for range 2000 {
		w.happen(3)
		if w.chance(3) || w.running >= 0 && w.chance(10) {
			w.signal(m, w.chance(50))
		}
		if event == nil {
			if w.running < 0 {
				w.fail("it waits for nothing, in state %q", m.state)
			}
			event = w.end()
		}
		w.story = append(w.story, fmt.Sprintf("%T%+v in state %q", event, event, m.state))
		effects := m.Next(event)
		event = nil
		said := ""
		for _, e := range effects {
			w.story = append(w.story, fmt.Sprintf("  %+v", e))
			switch e.Kind {
			case Say:
				said = e.Text
			case End:
				w.ends(e, said)
				return e.Code
			case Launch:
				launches++
			}
			if answer := w.do(e); answer != nil {
				if event != nil {
					w.fail("two questions at once")
				}
				event = answer
			}
		}
		if launches > len(w.plan.Cells)+w.plan.MaxRestarts {
			w.fail("%d launches of %d cells with at most %d restarts", launches, len(w.plan.Cells), w.plan.MaxRestarts)
		}
	}
	w.fail("it does not end")
	return 0
}

// ends checks the end of a start.
func (w *world) ends(e Effect, said string) {
	if said == "" {
		w.fail("it ends without a word")
	}
	if e.Code == 0 {
		for cell := range w.plan.Cells {
			if !w.succeeded[cell] || !w.finished[cell] {
				w.fail("it ends well, and cell %d has not succeeded on all ranks, or that is not recorded", cell)
			}
		}
	}
	if w.requeued && (e.Record || e.Code != rundir.RequeueCode) {
		w.fail("the job is queued again, and ends with a record or code %d", e.Code)
	}
	if e.Record && w.starts == w.number && !w.full {
		w.recorded = &e.Code
	}
}

// TestRandomStories: whatever happens, a cell that succeeded doesn't run again, nothing ends well
// that did not run on all ranks, a start that is superseded changes nothing, and every start ends
// with a reason.
func TestRandomStories(t *testing.T) {
	ways := map[string]int{}
	for seed := range 20000 {
		random := rand.New(rand.NewPCG(uint64(seed), 36))
		w := &world{t: t, random: random, finished: map[int]bool{}, succeeded: map[int]bool{}, full: random.IntN(20) == 0}
		w.plan = Plan{By: "SLURM", Job: "12", Nodes: "n1", MaxRestarts: random.IntN(5), Title: func(c rundir.Cell) string { return c.Name }, Resume: "submit resume x"}
		for i := range 1 + random.IntN(4) {
			w.plan.Cells = append(w.plan.Cells, rundir.Cell{Name: fmt.Sprint("c", i), Once: random.IntN(3) == 0})
		}
		if random.IntN(30) == 0 {
			w.plan.Refusal = "no key"
		}
		for start := range 12 {
			w.story = append(w.story, fmt.Sprintf("--- seed %d, start %d", seed, start))
			code := w.start()
			ways[fmt.Sprint(code == 0, code == rundir.RequeueCode, w.requeued, w.recorded != nil)]++
			if w.requeued || w.ending && random.IntN(2) == 0 {
				continue
			}
			w.full = w.full && random.IntN(2) == 0
			w.jobRestarts = 0 // The user resumes the run, with another job.
			if code == 0 {
				break
			}
		}
	}
	for _, way := range []string{"true false false true", "false true true false", "false true false true", "false false false true", "false false false false"} {
		if ways[way] < 100 {
			t.Errorf("only %d starts ended as %s (success, requeue code, requeued, recorded)", ways[way], way)
		}
	}
}

// TestTexts: what a job says.
func TestTexts(t *testing.T) {
	m := NewMachine(Plan{By: "SLURM", Job: "12", Nodes: "n[1-2]", Cells: []rundir.Cell{{Name: "train"}}, Title: func(rundir.Cell) string { return "cell train on 2 ranks" }, MaxRestarts: 1, Resume: "submit resume x"})
	var said []string
	for _, e := range []Event{
		Begin{}, Other{}, Started{Number: 1}, SetUp{}, Checked{}, Ended{Code: 9}, Word{State: "RUNNING"}, Died{Death: rundir.Death{Start: 1, Cell: "train", Update: 60}, Trains: true},
		Started{Number: 2, Restarts: 1}, Checked{}, Stop{Near: true}, Stop{}, Ended{Code: 0, Saved: true}, Word{State: "RUNNING"},
	} {
		for _, effect := range m.Next(e) {
			if effect.Kind == Say {
				said = append(said, effect.Text)
			}
		}
	}
	want := []string{
		"job 12, start 1, on n[1-2]", "cell train on 2 ranks", "cell train died after update 60 with exit code 9; start 2 resumes from its newest checkpoint", "cell train on 2 ranks",
		"SIGUSR1: the time limit is near", "the ranks have saved, but the job is not queued again: restarts so far: 1, and --max-restarts=1", "resume it with: submit resume x",
		"job 12 ends with exit code 75",
	}
	if !slices.Equal(said, want) {
		t.Errorf("%q\nwant %q", said, want)
	}
}
