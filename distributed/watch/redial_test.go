package watch

import (
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// await fails the test unless the condition becomes true.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: timeout", what)
		}
	}
}

// connected reports whether all other ranks are connected to the hub, and none is lost.
func (h *hub) connected() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for rank, p := range h.peers {
		if rank != h.watch.config.Rank && (h.links[rank] == nil || !p.lost.IsZero() || !p.gone.IsZero()) {
			return false
		}
	}
	return true
}

// breakSome breaks some connections, at either end, as a bad network does.
func breakSome(watches []*Watch) {
	for _, w := range watches {
		for _, l := range w.links {
			if rand.IntN(4) == 0 {
				l.current().abort()
			}
		}
		if w.hub == nil {
			continue
		}
		w.hub.mu.Lock()
		for _, l := range w.hub.links {
			if rand.IntN(4) == 0 {
				l.abort()
			}
		}
		w.hub.mu.Unlock()
	}
}

// TestRedial: connections that break at either end are restored. Ranks that agree are not reported,
// and one that disagrees is still found.
func TestRedial(t *testing.T) {
	const n = 5
	var log safeBuffer
	ended := make(chan int, n)
	watches := startMany(t, n, &log, func(c *Config) {
		rank := c.Rank
		c.Exit = func(int) {
			ended <- rank
			select {}
		}
	})
	for round := range 30 {
		for _, w := range watches {
			w.Progress(int64(round))
			_ = w.Enter(AllReduce, Float32, round)(nil)
			w.kick()
		}
		breakSome(watches)
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
	}
	for _, w := range watches[:hubs] {
		await(t, "all ranks are connected again", w.hub.connected)
	}
	if text := log.String(); text != "" || len(ended) > 0 {
		t.Fatalf("a healthy job ended: %s", text)
	}
	for rank, w := range watches {
		w.Enter(Barrier, Bytes, 0)
		if rank == 3 {
			w.Enter(AllReduce, Float32, 7)
		} else {
			w.Enter(AllReduce, Float32, 8)
		}
	}
	await(t, "all end", func() bool { return len(ended) == n })
	if want := "rank 3 (here) calls all-reduce 32 (7 float32) where rank 0 (here) calls all-reduce 32 (8 float32)"; !strings.Contains(log.String(), want) {
		t.Errorf("the log lacks %q: %s", want, log.String())
	}
}

// TestLateForTheVerdict: a rank whose connection is lost while the others end gets the verdict when
// it reconnects.
func TestLateForTheVerdict(t *testing.T) {
	var log safeBuffer
	var mu sync.Mutex
	ended := map[int]bool{}
	watches := startMany(t, 3, &log, func(c *Config) {
		rank := c.Rank
		c.Exit = func(int) {
			mu.Lock()
			ended[rank] = true
			mu.Unlock()
			select {}
		}
	})
	hub := watches[0].hub
	await(t, "all ranks are connected", hub.connected)
	hub.mu.Lock()
	hub.told = &order{Verdict: &verdict{}} // As if the order had been sent while no rank was connected.
	hub.links[2].abort()
	hub.mu.Unlock()
	await(t, "rank 2 ends", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return ended[2]
	})
}

// TestExcuse: a hub that was paused itself blames no rank for messages that it could not receive.
func TestExcuse(t *testing.T) {
	now := time.Now()
	hub := &hub{looked: now.Add(-20 * time.Second), peers: []*peer{
		{heard: now.Add(-20 * time.Second), state: State{Entered: 5, Left: 4, Since: time.Second}},
		{heard: now.Add(-20 * time.Second), lost: now.Add(-25 * time.Second)},
	}}
	hub.compensatePause(now)
	if p := hub.peers[0]; p.silent(now) || p.waited(now) > 2*time.Second {
		t.Errorf("heard %v ago, waits for %v", now.Sub(p.heard), p.waited(now))
	}
	hub.peers[1].giveUp(now.Add(redialTime - 10*time.Second))
	if !hub.peers[1].gone.IsZero() {
		t.Error("a rank that was lost for 5 s of the hub's running time is given up")
	}
	hub.compensatePause(now.Add(look))
	if p := hub.peers[0]; now.Sub(p.heard) > time.Second {
		t.Error("a hub that was not paused shifts the times")
	}
}

// TestCutOff: a hub that has lost most ranks blames itself.
func TestCutOff(t *testing.T) {
	for lostRanks, blamed := range map[int]int{1: 2, 2: 0} {
		peers := []*peer{rank(0, fine), rank(1, fine), rank(2, fine)}
		for _, p := range peers[3-lostRanks:] {
			lost(40*time.Second, busy)(p)
			p.host = "n2"
		}
		h := &hub{watch: &Watch{config: Config{Rank: 0, Size: 3, Host: "n1"}}, peers: peers, compared: newComparison()}
		if v := h.decide(noon); v == nil || v.Failure.Rank != blamed {
			t.Errorf("%d of 3 ranks are lost: %+v, want a verdict that blames rank %d", lostRanks, v, blamed)
		}
	}
}

// TestGoodbyes: ranks that finish one after the other on an unreliable network end without a
// failure.
func TestGoodbyes(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	for range rounds {
		var log safeBuffer
		n := 2 + rand.IntN(5)
		hasty := rand.IntN(2) == 0
		watches := startMany(t, n, &log, func(c *Config) { c.LauncherEndsAll = hasty })
		for range 3 {
			for _, w := range watches {
				w.Progress(1)
				_ = w.Enter(Barrier, Bytes, 0)(nil)
			}
			breakSome(watches)
		}
		var group sync.WaitGroup
		for _, w := range watches {
			pause := time.Duration(rand.IntN(300)) * time.Millisecond
			group.Go(func() {
				w.Closing()
				time.Sleep(pause)
				w.Close()
			})
		}
		group.Wait()
		if log.String() != "" {
			t.Fatalf("%d ranks, hasty %v: %s", n, hasty, log.String())
		}
	}
}

// TestFinished: the end of a process is distinguished from a broken connection, even if a write was
// the first to fail.
func TestFinished(t *testing.T) {
	tests := []struct {
		name string
		end  func(mine, theirs *link)
		want bool
	}{
		{"a process ends", func(_, theirs *link) { theirs.close() }, true},
		{"a process ends in the middle of a message", func(_, theirs *link) {
			_, _ = theirs.conn.Write([]byte{100})
			theirs.close()
		}, true},
		{"a reset", func(_, theirs *link) { theirs.abort() }, false},
		{"a reset that a write notices first", func(mine, theirs *link) {
			theirs.abort()
			for err := error(nil); err == nil; _, err = mine.conn.Write([]byte{1}) {
				time.Sleep(time.Millisecond)
			}
		}, false},
		{"this side gave up", func(mine, _ *link) { mine.abort() }, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			a, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			b, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			mine, theirs := newLink(a), newLink(b)
			defer mine.close()
			defer theirs.close()
			test.end(mine, theirs)
			if err := mine.receive(&report{}); mine.finished(err) != test.want {
				t.Errorf("finished is %v after %v, want %v", !test.want, err, test.want)
			}
		})
	}
}
