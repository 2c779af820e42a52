package network

import (
	"net"
	"os"
	"strings"
)

// Here names this machine's loopback: processes that have the same text reach one another by it.
// Where it is down, the text is one that no other process has.
func Here() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/net")
	if len(boot) == 0 || space == "" || !loopbackUp() {
		return string(NewKey())
	}
	return strings.TrimSpace(string(boot)) + " " + space
}

func loopbackUp() bool {
	interfaces, err := net.Interfaces()
	if err != nil {
		return false
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback != 0 && i.Flags&net.FlagUp != 0 {
			return true
		}
	}
	return false
}
