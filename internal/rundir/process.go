package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Process identifies a process for good: process ids are reused, and other machines read run
// directories too.
type Process struct {
	Host string `json:"host"`
	// Boot is the kernel's id of the current boot.
	Boot string `json:"boot"`
	PID  int    `json:"pid"`
	// Start is when the process started, in clock ticks since the boot.
	Start string `json:"start"`
	// Namespace is the kernel's name for the namespace of PID, because containers have their own.
	// Empty if it is not known.
	Namespace string `json:"pid_namespace,omitempty"`
}

// ThisProcess identifies the calling process.
func ThisProcess() (Process, error) { return thisProcess() }

var thisProcess = sync.OnceValues(func() (Process, error) { return findProcess("/proc", os.Getpid()) })

// Gone reports whether the process has certainly ended. It is false for a process on another
// machine, about which nothing is known.
func (p Process) Gone() bool { return p.goneFrom("/proc") }

func (p Process) goneFrom(proc string) bool {
	now, err := findProcess(proc, p.PID)
	switch {
	case p.Host == "" || now.Host != p.Host:
		return false
	case now.Boot == "":
		return false
	case now.Boot != p.Boot:
		return true
	case !sameNamespace(p, now):
		return false
	case errors.Is(err, fs.ErrNotExist):
		return !hidden(p.PID)
	}
	return err == nil && now.Start != p.Start
}

// here reports whether Gone would notice the end of the process at once.
func (p Process) here() bool {
	self, err := ThisProcess()
	return err == nil && self.Host == p.Host && self.Boot == p.Boot && sameNamespace(p, self)
}

// sameNamespace reports whether the ids of two processes on one machine can be compared.
func sameNamespace(a, b Process) bool {
	return a.Namespace == "" || b.Namespace == "" || a.Namespace == b.Namespace
}

// Kill kills the process if it runs where the caller does, and is not the caller itself.
func (p Process) Kill() {
	if p.PID > 1 && p.PID != os.Getpid() && p.here() && !p.Gone() {
		_ = syscall.Kill(p.PID, syscall.SIGKILL) // It may have just ended.
	}
}

// hidden reports whether a process is running that /proc does not show: administrators can hide
// other users' processes.
func hidden(pid int) bool { return errors.Is(syscall.Kill(pid, 0), fs.ErrPermission) }

// findProcess identifies process pid. On an error it returns what it knows about the machine. A
// process that has ended and only waits for its parent to notice does not exist.
func findProcess(proc string, pid int) (Process, error) {
	p := Process{PID: pid}
	var err error
	if p.Host, err = os.Hostname(); err != nil {
		return p, fmt.Errorf("this machine's name: %w", err)
	}
	boot, err := os.ReadFile(filepath.Join(proc, "sys", "kernel", "random", "boot_id"))
	if err != nil {
		return p, fmt.Errorf("process %d: %w", pid, err)
	}
	p.Boot = strings.TrimSpace(string(boot))
	p.Namespace, _ = os.Readlink(filepath.Join(proc, "self", "ns", "pid")) // It may be unknown.
	p.Start, err = startTime(proc, pid)
	if err != nil {
		return p, fmt.Errorf("process %d: %w", pid, err)
	}
	return p, nil
}

// startTime returns field 22 of /proc/PID/stat. Field 2, the program's name in brackets, may have
// spaces and brackets. It returns an error for a process that has ended and only waits for its
// parent to notice.
//
// prometheus/procfs could read it too, but it imports package net, and a program that is linked
// with net's C code no longer notices that all of its goroutines are asleep.
func startTime(proc string, pid int) (string, error) {
	stat, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // The first one is field 3.
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields after the name, want at least 20: %q", pid, len(fields), stat)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", fmt.Errorf("it has ended: %w", os.ErrNotExist)
	}
	return fields[19], nil
}

// Signal sends a signal to the process. It returns no error if the process has ended, and an error
// if it is on another machine, or in another container, because it cannot be reached.
func (p Process) Signal(sig syscall.Signal) error {
	switch {
	case p.Gone():
		return nil
	case !p.here():
		return fmt.Errorf("process %d runs on %s and cannot be reached from here: run the command there", p.PID, p.Host)
	}
	return syscall.Kill(p.PID, sig)
}
