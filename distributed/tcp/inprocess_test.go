package tcp_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gonbatch/distributed/tcp"
)

// TestInProcess: ranks in this process leave no file open.
func TestInProcess(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	onRanks(t, 2, func(c *tcp.Comm) { c.Barrier() }) //nolint:errcheck // so that Go's own poller is open
	before := open()
	onRanks(t, 9, func(c *tcp.Comm) {
		o := operation{kind: allToAll, dtype: int32s, count: 7}
		if err := checkProgram(c, o); err != nil {
			t.Error(err)
		}
	})
	after := open()
	for late := time.Now().Add(10 * time.Second); after > before && time.Now().Before(late); after = open() {
		time.Sleep(10 * time.Millisecond) // A goroutine may still be closing one.
	}
	if after > before {
		t.Errorf("%d files are open, and %d were before", after, before)
	}
	for _, n := range []int{0, -1} {
		if _, err := tcp.InProcess(n); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("InProcess(%d): there must be at least 1 rank", n)) {
			t.Errorf("%d ranks: %v", n, err)
		}
	}
}

// TestInProcessGone: a rank that left before another connects to it directly delays nobody.
func TestInProcessGone(t *testing.T) {
	onRanks(t, 3, func(c *tcp.Comm) {
		if c.Rank() == 1 {
			return
		}
		if err := checkProgram(c, operation{kind: allToAll, dtype: int32s, count: 7}); err == nil {
			t.Errorf("rank %d has exchanged data", c.Rank())
		}
	})
}
