package network

import (
	"net"
	"os"

	"gonbatch/internal/rundir"
)

// Here identifies this machine's loopback address: processes with the same text can reach one
// another through it. If the loopback is down, the text is unique.
func Here() string {
	process, _ := rundir.ThisProcess() // Without /proc, its boot is unknown.
	space, _ := os.Readlink("/proc/self/ns/net")
	if process.Boot == "" || space == "" || !loopbackUp() {
		return string(NewKey())
	}
	return process.Boot + " " + space
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
