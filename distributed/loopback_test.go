package distributed_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
)

// TestLoopbackOnly: ranks that all run on this machine, such as those of %distributed, can't be
// reached from other machines.
func TestLoopbackOnly(t *testing.T) {
	if ranktest.InRank() {
		w := initWorld(t)
		found := listening(t)
		if w.Rank() == 0 && len(found) == 0 {
			t.Error("rank 0 doesn't listen, so it can't watch the other ranks")
		}
		for _, address := range found {
			if !strings.HasPrefix(address, "0100007F:") { // 127.0.0.1, as the kernel writes it.
				t.Errorf("rank %d listens at %s", w.Rank(), address)
			}
		}
		if err := w.Barrier(); err != nil { // No rank ends before all have looked.
			t.Error(err)
		}
		return
	}
	if out, err := ranktest.Start(t, ranktest.Torchrun, 3, nil); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// listening lists the addresses that this process listens on.
func listening(t *testing.T) []string {
	t.Helper()
	mine := map[string]bool{}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil {
			mine[target] = true
		}
	}
	var all []string
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // The machine has no IPv6.
		}
		for _, line := range strings.Split(string(text), "\n")[1:] {
			const local, state, inode, listen = 1, 3, 9, "0A"
			if f := strings.Fields(line); len(f) > inode && f[state] == listen && mine[fmt.Sprintf("socket:[%s]", f[inode])] {
				all = append(all, f[local])
			}
		}
	}
	return all
}
