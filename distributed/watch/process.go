package watch

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// process identifies a process of a machine beyond the reuse of its number, also where containers
// number theirs alike.
type process struct {
	PID int
	// Space is the machine and the container that PID counts in; Started is the kernel's time of
	// the process' start.
	Space, Started string
}

func thisProcess() process {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	space, _ := os.Readlink("/proc/self/ns/pid")
	return process{PID: os.Getpid(), Space: strings.TrimSpace(string(boot)) + " " + space, Started: started(os.Getpid())}
}

// started is the field "starttime" of /proc/PID/stat; empty where there is no such process.
func started(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The second field is the program's name in parentheses, which may hold anything.
	text := string(stat)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}

// kill ends the process if it lives where this one does, and is still the same.
func (p process) kill() {
	here := thisProcess()
	if p.PID <= 1 || p.PID == here.PID || p.Space != here.Space || p.Started == "" || p.Started != started(p.PID) {
		return
	}
	_ = syscall.Kill(p.PID, syscall.SIGKILL) // It may have ended just now.
}
