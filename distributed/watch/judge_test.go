package watch

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/internal/solo"
)

// noon is the time of the judgement.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// rank returns a peer that was heard from just now, with a change.
func rank(n int, change func(*peer)) *peer {
	p := &peer{rank: n, host: "n1", heard: noon, state: State{Step: 40, Entered: 17, Left: 17, Since: time.Hour, Current: Collective{17, AllReduce, Float32, 1000, 0}}}
	change(p)
	return p
}

func fine(*peer) {}

// in puts the rank into the next collective, for a time.
func in(d time.Duration) func(*peer) {
	return func(p *peer) {
		p.state.Entered, p.state.Since = 18, d
		p.state.Current = Collective{18, AllReduce, Float32, 1000, 0}
	}
}

func gone(ago time.Duration, more ...func(*peer)) func(*peer) {
	return func(p *peer) {
		p.gone = noon.Add(-ago)
		for _, change := range more {
			change(p)
		}
	}
}

func busy(p *peer)    { p.state.Busy = true }
func told(p *peer)    { p.state.Told = true }
func closing(p *peer) { p.state.Closing = true }
func bye(p *peer)     { p.bye = true }
func problem(p *peer) { p.state.Problem = "connection reset" }
func crash(p *peer)   { p.crash = "panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n" }
func nan(p *peer) {
	p.failure = &rundir.Failure{Kind: rundir.NaN, Rank: p.rank, Error: "the loss is NaN"}
}

func silent(d time.Duration, more ...func(*peer)) func(*peer) {
	return func(p *peer) {
		p.heard = noon.Add(-d)
		for _, change := range more {
			change(p)
		}
	}
}

// lost breaks the rank's connection.
func lost(ago time.Duration, more ...func(*peer)) func(*peer) {
	return func(p *peer) {
		p.heard, p.lost = noon.Add(-ago), noon.Add(-ago)
		for _, change := range more {
			change(p)
		}
		p.giveUp(noon)
	}
}

// alone makes the rank do something by itself.
func alone(p *peer) {
	p.state.Alone, p.state.AloneFor, p.state.Moved = "OnMain at train.go:12", time.Hour, time.Hour
}

// moved makes the rank end or advance work of its own, that long ago.
func moved(ago time.Duration) func(*peer) { return func(p *peer) { p.state.Moved = ago } }

// left takes the rank out of the next collective, that long ago.
func left(ago time.Duration) func(*peer) {
	return func(p *peer) { p.state.Entered, p.state.Left, p.state.Since = 18, 18, ago }
}

const minute = time.Minute

// judgeCases are states of three ranks that a hub may see, with the expected verdict.
var judgeCases = []struct {
	name  string
	ranks [3]func(*peer)
	hasty bool
	kind  rundir.FailureKind // Empty if there is no failure.
	rank  int
	want  string
}{
	{name: "all is well", ranks: [3]func(*peer){fine, fine, in(time.Second)}},
	{name: "all compute for a long time", ranks: [3]func(*peer){silent(time.Second), fine, fine}},
	{name: "a wait that may end", ranks: [3]func(*peer){in(59 * time.Second), fine, in(59 * time.Second)}},
	{name: "one has closed, the others compute", ranks: [3]func(*peer){fine, bye, fine}},
	{name: "one is closing, the others compute", ranks: [3]func(*peer){fine, closing, fine}},

	{name: "gone, but no rank misses it", ranks: [3]func(*peer){fine, gone(minute), fine}},
	{name: "gone, and all others have said goodbye", ranks: [3]func(*peer){bye, gone(minute), bye}},
	{name: "gone just now while others wait", ranks: [3]func(*peer){in(minute / 2), gone(100 * time.Millisecond), fine}},
	{name: "gone under mpirun", hasty: true, ranks: [3]func(*peer){fine, gone(0), fine}, kind: rundir.Died, rank: 1, want: "ended without World.Close"},
	{name: "gone in training", ranks: [3]func(*peer){fine, gone(0, busy), fine}, kind: rundir.Died, rank: 1, want: "ended without World.Close"},
	{name: "gone after a panic", ranks: [3]func(*peer){fine, fine, gone(0, crash)}, kind: rundir.Died, rank: 2, want: "panic: boom"},
	{name: "gone while another's collective failed", ranks: [3]func(*peer){fine, gone(0), problem}, kind: rundir.Died, rank: 1},
	{name: "gone while another waits", ranks: [3]func(*peer){fine, gone(2 * time.Second), in(2 * time.Second)}, kind: rundir.Died, rank: 1},
	{name: "gone while another closes", ranks: [3]func(*peer){fine, gone(3 * time.Second), closing}, kind: rundir.Died, rank: 1},
	{name: "gone, and the launcher ends the others", ranks: [3]func(*peer){told, gone(0), fine}, kind: rundir.Died, rank: 1},
	{name: "all are told to end, one has", ranks: [3]func(*peer){told, gone(time.Second, told, busy), told}},
	{name: "told to end, but the others were not", ranks: [3]func(*peer){in(3 * time.Second), gone(3*time.Second, told), fine}, kind: rundir.Died, rank: 1, want: "told to stop by a signal"},
	{name: "the first of two that are gone", hasty: true, ranks: [3]func(*peer){gone(time.Second), gone(2 * time.Second), fine}, kind: rundir.Died, rank: 1},

	{name: "a rank reports a failure", ranks: [3]func(*peer){gone(0, busy), fine, nan}, kind: rundir.NaN, rank: 2, want: "the loss is NaN"},

	{name: "in a collective after another has closed", ranks: [3]func(*peer){bye, in(3 * time.Second), fine}, kind: rundir.Mismatch, rank: 0, want: "rank 0 (n1) has called Close after 17 collectives and won't call all-reduce 18 (1000 float32), in which rank 1 (n1) waits"},
	{name: "in a collective while another closes", ranks: [3]func(*peer){closing, in(time.Second), in(3 * time.Second)}, kind: rundir.Mismatch, rank: 0, want: "all-reduce 18 (1000 float32)"},
	{name: "in a collective while all others close", ranks: [3]func(*peer){closing, closing, in(3 * time.Second)}, kind: rundir.Mismatch, rank: 2, want: "all-reduce 18 (1000 float32)"},
	{name: "in a collective that the closed one was in", ranks: [3]func(*peer){func(p *peer) { in(0)(p); bye(p) }, in(3 * time.Second), fine}},

	{name: "one does not enter", ranks: [3]func(*peer){in(minute), fine, in(minute)}, kind: rundir.Stuck, rank: 1, want: "rank 1 (n1) at step 40 has not entered"},
	{name: "one is silent", ranks: [3]func(*peer){in(minute), in(minute), silent(time.Minute)}, kind: rundir.Stuck, rank: 2, want: "rank 2 (n1) at step 40 has been silent for 1m0s"},
	{name: "one is silent in the collective", ranks: [3]func(*peer){silent(minute, in(0)), in(minute), in(minute)}, kind: rundir.Stuck, rank: 0, want: "its process is stopped"},
	{name: "the silent one is to blame, not the one that it delays", ranks: [3]func(*peer){fine, silent(minute), in(minute)}, kind: rundir.Stuck, rank: 1},
	{name: "one is silent, another is late on a busy machine", ranks: [3]func(*peer){silent(5*time.Second, in(0)), in(minute), silent(minute)}, kind: rundir.Stuck, rank: 2, want: "stuck: rank 2 (n1) at step 40 has been silent for 1m0s"},
	{name: "two are silent, one for longer", ranks: [3]func(*peer){silent(40 * time.Second), in(minute), silent(minute)}, kind: rundir.Stuck, rank: 2, want: "stuck: rank 2 (n1) at step 40, rank 0 (n1) at step 40 has been silent for 1m0s"},
	{name: "the connection to the one that is waited for is lost", ranks: [3]func(*peer){in(minute), lost(20 * time.Second), in(minute)}},
	{name: "a connection is lost, and mpirun ends all at an end", hasty: true, ranks: [3]func(*peer){fine, lost(29*time.Second, busy), fine}},
	{name: "a connection that did not come back", ranks: [3]func(*peer){fine, lost(31*time.Second, busy), fine}, kind: rundir.Died, rank: 1, want: "its machine, or the network to it, did not answer for 31s"},
	{name: "a connection is lost, and the launcher ends the others", ranks: [3]func(*peer){told, lost(5 * time.Second), fine}, kind: rundir.Died, rank: 1, want: "its machine, or the network to it, did not answer for 5s"},
	{name: "a connection is lost as all are told to end", ranks: [3]func(*peer){told, lost(5*time.Second, told), told}},
	{name: "the state of a lost rank is unknown", ranks: [3]func(*peer){lost(20*time.Second, in(minute)), fine, closing}},
	{name: "all are in it", ranks: [3]func(*peer){in(minute), in(minute), in(minute)}, kind: rundir.Stuck, rank: 0, want: "the network between them"},
	{name: "one works alone", ranks: [3]func(*peer){alone, in(time.Hour), in(time.Hour)}},
	{name: "one works alone, on a silent machine", ranks: [3]func(*peer){in(time.Hour), silent(minute, alone), in(time.Hour)}, kind: rundir.Stuck, rank: 1, want: "has been silent for 1m0s"},
	{name: "one works alone, another does not enter", ranks: [3]func(*peer){alone, in(minute), fine}, kind: rundir.Stuck, rank: 2, want: "rank 2 (n1) at step 40 has not entered"},
	{name: "one worked alone until lately", ranks: [3]func(*peer){moved(59 * time.Second), in(time.Hour), in(time.Hour)}},
	{name: "one worked alone, and hangs since", ranks: [3]func(*peer){moved(time.Minute), in(time.Hour), in(time.Hour)}, kind: rundir.Stuck, rank: 0, want: "has not entered"},
	{name: "one is in work of its own and in the collective", ranks: [3]func(*peer){func(p *peer) { in(minute)(p); alone(p) }, in(time.Hour), in(time.Hour)}, kind: rundir.Stuck, rank: 1, want: "the network between them"},
	{name: "the last one has entered after a long wait", ranks: [3]func(*peer){in(0), in(time.Hour), in(time.Hour)}},
	{name: "the first one has left after a long wait", ranks: [3]func(*peer){left(time.Second), in(time.Hour), in(time.Hour)}},
	{name: "one has left long ago, the others hang", ranks: [3]func(*peer){left(time.Hour), in(time.Hour), in(time.Hour)}, kind: rundir.Stuck, rank: 1, want: "the network between them"},
	{name: "one died while it worked alone", ranks: [3]func(*peer){gone(2*time.Second, alone), in(time.Hour), in(time.Hour)}, kind: rundir.Died, rank: 0},
	{name: "one ahead of the others waits for them", ranks: [3]func(*peer){in(minute), fine, fine}, kind: rundir.Stuck, rank: 1, want: "rank 1 (n1) at step 40, rank 2 (n1) at step 40 has not entered"},
}

func TestJudge(t *testing.T) {
	for _, test := range judgeCases {
		t.Run(test.name, func(t *testing.T) {
			var peers []*peer
			for n, change := range test.ranks {
				peers = append(peers, rank(n, change))
			}
			v := judge(noon, peers, limits{stuck: minute, hasty: test.hasty})
			if v == nil {
				v = &verdict{}
			}
			if v.Failure.Kind != test.kind || v.Failure.Rank != test.rank || !strings.Contains(v.Failure.Error, test.want) {
				t.Errorf("%q of rank %d: %s; want %q of rank %d with %q", v.Failure.Kind, v.Failure.Rank, v.Failure.Error, test.kind, test.rank, test.want)
			}
		})
	}
}

// TestMissedAlone: a rank that works alone is named once others have waited for it too long.
func TestMissedAlone(t *testing.T) {
	tests := []struct {
		name  string
		ranks [3]func(*peer)
		rank  int // -1 if none is missed.
	}{
		{"not for long", [3]func(*peer){alone, in(59 * time.Second), in(time.Second)}, -1},
		{"for long", [3]func(*peer){in(minute), alone, in(time.Second)}, 1},
		{"none waits", [3]func(*peer){fine, alone, fine}, -1},
		{"it has left the collective", [3]func(*peer){func(p *peer) { left(0)(p); alone(p) }, in(minute), in(minute)}, -1},
		{"it does nothing alone", [3]func(*peer){fine, in(minute), in(minute)}, -1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var peers []*peer
			for n, change := range test.ranks {
				peers = append(peers, rank(n, change))
			}
			got := -1
			if missed, by := missedAlone(noon, peers, minute); missed != nil {
				got = missed.rank
				if by == nil || by.waited(noon) < minute {
					t.Errorf("missed by %+v", by)
				}
			}
			if got != test.rank {
				t.Errorf("rank %d is missed, want %d", got, test.rank)
			}
		})
	}
}

// TestDescribeAlone: reports say what a rank does by itself, and for how long.
func TestDescribeAlone(t *testing.T) {
	got := rank(2, silent(time.Second, alone)).describe(noon)
	if want := "rank 2 (n1): step 40, has worked alone for 1h0m1s (OnMain at train.go:12)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSoloState: a rank's state has what the process does by itself.
func TestSoloState(t *testing.T) {
	w := &Watch{record: newRecord()}
	end := solo.Begin(strings.Repeat("x", 1000))
	if s := w.state(0); s.Alone != strings.Repeat("x", maxAlone) || s.AloneFor < 0 || s.AloneFor > time.Minute || s.Moved <= 0 || s.Moved > time.Minute {
		t.Errorf("while it works: %+v", s)
	}
	end()
	if s := w.state(0); s.Alone != "" || s.Moved <= 0 || s.Moved > time.Minute {
		t.Errorf("afterwards: %+v", s)
	}
}

func TestNeverStuck(t *testing.T) {
	peers := []*peer{rank(0, in(time.Hour)), rank(1, fine)}
	if v := judge(noon, peers, limits{}); v != nil {
		t.Errorf("without a limit: %+v", v)
	}
}

func TestCompare(t *testing.T) {
	one, two := Collective{1, AllReduce, Float32, 5, 0}, Collective{2, Barrier, Bytes, 0, 0}
	larger, cast := Collective{1, AllReduce, Float32, 6, 0}, Collective{2, Broadcast, Bytes, 3, 0}
	tests := []struct {
		name  string
		ranks [][]Collective
		blame int
		want  string // Empty if they agree.
	}{
		{"the same", [][]Collective{{one, two}, {one, two}}, 0, ""},
		{"behind", [][]Collective{{one, two}, {one}}, 0, ""},
		{"ahead", [][]Collective{{one}, {one, two}}, 0, ""},
		{"another size", [][]Collective{{one}, {larger}}, 1, "rank 1 (n1) calls all-reduce 1 (6 float32) where rank 0 (n0) calls all-reduce 1 (5 float32)"},
		{"another type", [][]Collective{{one}, {{1, AllReduce, Int32, 5, 0}}}, 1, "all-reduce 1 (5 int32)"},
		{"another kind", [][]Collective{{one, two}, {one, cast}}, 1, "broadcast 2 (3 bytes) where rank 0 (n0) calls barrier 2"},
		{"one against two", [][]Collective{{larger}, {one}, {one}}, 0, "rank 0 (n0) calls all-reduce 1 (6 float32) where rank 1 (n1) calls all-reduce 1 (5 float32)"},
		{"one in the middle", [][]Collective{{one}, {larger}, {one}}, 1, "rank 1 (n1) calls all-reduce 1 (6 float32)"},
		{"the first dispute counts", [][]Collective{{one, two}, {larger, cast}}, 1, "all-reduce 1 (6 float32)"},
	}
	for _, test := range tests {
		for _, reverse := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, reversed %v", test.name, reverse), func(t *testing.T) {
				c := newComparison()
				for i := range test.ranks {
					if reverse {
						i = len(test.ranks) - 1 - i
					}
					c.add(&peer{rank: i, host: fmt.Sprintf("n%d", i), state: State{Recent: test.ranks[i]}})
				}
				v := c.verdict()
				if v == nil {
					v = &verdict{}
				}
				if (v.Failure.Error == "") != (test.want == "") || v.Failure.Rank != test.blame || !strings.Contains(v.Failure.Error, test.want) {
					t.Errorf("rank %d: %q, want rank %d: %q", v.Failure.Rank, v.Failure.Error, test.blame, test.want)
				}
			})
		}
	}
}

// TestCompareForgets: a long training does not fill the memory.
func TestCompareForgets(t *testing.T) {
	c := newComparison()
	for n := range uint64(10 * compared) {
		c.add(&peer{state: State{Recent: []Collective{{n + 1, Barrier, Bytes, 0, 0}}}})
	}
	if len(c.seen) > 2*compared+1 {
		t.Errorf("%d collectives are remembered", len(c.seen))
	}
	if _, ok := c.seen[10*compared]; !ok {
		t.Error("the newest is forgotten")
	}
}

func TestRecord(t *testing.T) {
	w := &Watch{config: Config{Rank: 3}, record: newRecord(), stop: make(chan struct{})}
	for n := range 300 {
		if err := w.Enter(AllReduce, Float64, n)(nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.New("refused"); w.Enter(Barrier, Bytes, 0)(err) != err { //nolint:errorlint // the identical error
		t.Error("the error of a collective is not returned")
	}
	w.Enter(Broadcast, Bytes, 7)
	s := w.state(299)
	if s.Entered != 302 || s.Left != 301 || !s.waiting() || s.Since <= 0 || s.Since > time.Minute {
		t.Errorf("state: %+v", s)
	}
	want := []Collective{{300, AllReduce, Float64, 299, 0}, {301, Barrier, Bytes, 0, 0}, {302, Broadcast, Bytes, 7, 0}}
	if len(s.Recent) != 3 || s.Recent[0] != want[0] || s.Recent[1] != want[1] || s.Recent[2] != want[2] || s.Current != want[2] {
		t.Errorf("recent: %v, current: %v; want %v", s.Recent, s.Current, want)
	}
	if all := w.state(0).Recent; len(all) != maxRecent || all[maxRecent-1] != want[2] {
		t.Errorf("%d recent collectives, the last %v; want %d, %v", len(all), all[len(all)-1], maxRecent, want[2])
	}
}

// BenchmarkEnter measures what the watch adds to a collective.
func BenchmarkEnter(b *testing.B) {
	w := &Watch{record: newRecord()}
	for b.Loop() {
		_ = w.Enter(AllReduce, Float32, 1000)(nil)
	}
}
