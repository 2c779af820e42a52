package network

import (
	"net"
	"os"
	"strings"
)

// Here identifies this machine's loopback address: processes with the same text can reach one
// another through it. If the loopback is down, the text is unique.
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
