package network

import (
	"fmt"
	"os"
	"syscall"
)

// spareFiles are left for everything else that the process opens.
const spareFiles = 64

// Room returns an error if this process can't have so many more connections open at once. Go has
// already raised the soft limit of open files to the hard one.
func Room(connections int) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return os.NewSyscallError("getrlimit", err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil // Without /proc, the number of open files is unknown.
	}
	if need := len(open) + connections + spareFiles; uint64(need) > limit.Cur {
		return fmt.Errorf("%d connections need %d open files, and this process may have %d: raise its hard limit (ulimit -Hn %d, LimitNOFILE= in systemd, or ask your site's administrator), or use fewer ranks", connections, need, limit.Cur, need)
	}
	return nil
}
