package tcp_test

import (
	"os"
	"testing"
	"time"

	"gonbatch/distributed/tcp"
)

// TestLeavesNoFiles: ranks that have left have no file open.
func TestLeavesNoFiles(t *testing.T) {
	open := func() int {
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(files)
	}
	run := func(name string, n int, body func(c *tcp.Comm)) {
		t.Run(name, func(t *testing.T) { onRanks(t, n, body) })
	}
	run("first", 2, func(c *tcp.Comm) { c.Barrier() }) //nolint:errcheck // so that Go's own poller is open
	before := open()
	run("all-to-all", 9, func(c *tcp.Comm) {
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
}

// TestGoneBeforeConnected: a rank that left before another connects to it directly delays nobody.
func TestGoneBeforeConnected(t *testing.T) {
	onRanks(t, 5, func(c *tcp.Comm) {
		if c.Rank() == 1 {
			return
		}
		if err := checkProgram(c, operation{kind: allToAll, dtype: int32s, count: 7}); err == nil {
			t.Errorf("rank %d has exchanged data", c.Rank())
		}
	})
}
