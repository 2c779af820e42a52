package relay

import (
	"slices"
	"testing"
	"time"
)

// TestOverhead: a cell takes at most 2 ms more through the relay than without it. The fastest tenth
// of the cells counts, because other tests may be running on the machine.
func TestOverhead(t *testing.T) {
	const cells, most = 200, 2 * time.Millisecond
	b := start(t)
	through, direct := b.another("through"), b.anotherAt(b.backAddress, "direct")
	times := map[*socket][]time.Duration{}
	for range cells {
		for _, s := range []*socket{through, direct} {
			begin := time.Now()
			if err := s.send(newMessage(t, "execute_request", object{"code": "out hello", "silent": false})); err != nil {
				t.Fatal(err)
			}
			if reply := receive(t, s); text(t, reply, "status") != "ok" {
				t.Fatalf("reply %s", reply.Content)
			}
			times[s] = append(times[s], time.Since(begin))
		}
	}
	quick := func(s *socket) time.Duration { slices.Sort(times[s]); return times[s][cells/10] }
	if added := quick(through) - quick(direct); added > most {
		t.Errorf("a cell takes %v through the relay, %v without it: %v more, want at most %v", quick(through), quick(direct), added, most)
	} else {
		t.Logf("a cell takes %v through the relay, %v without it", quick(through), quick(direct))
	}
}
