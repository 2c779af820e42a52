// Package proc finds processes in Linux's /proc: by their environment, and by what started them.
// Elsewhere, and for processes that have ended or belong to another user, it finds nothing.
//
//	for pid := range proc.With("GONBATCH_RUN_DIR=" + dir) {
//		_ = syscall.Kill(pid, syscall.SIGKILL)
//	}
//
// It reads by prometheus/procfs what that knows. It leads to package net, whose C code turns off
// Go's detection of deadlocks, so nothing that every cell imports may use it: such a package, like
// rundir, reads /proc by itself.
package proc

import (
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// With returns the processes that have variable, NAME=value, in their environment, except the
// calling process, each with its environment.
func With(variable string) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		processes, _ := procfs.AllProcs()
		for _, p := range processes {
			environ, err := p.Environ()
			if err != nil || p.PID == os.Getpid() || !slices.Contains(environ, variable) {
				continue
			}
			if !yield(p.PID, environ) {
				return
			}
		}
	}
}

// Group returns the processes of a process group.
func Group(group int) (pids []int) {
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		if of, err := syscall.Getpgid(p.PID); err == nil && of == group {
			pids = append(pids, p.PID)
		}
	}
	return pids
}

// Children returns the processes that a process has started, by any of its threads, and for which
// nothing has waited yet.
func Children(pid int) (pids []int) {
	for _, list := range readAll(pid, "task/*/children") { // procfs has no function for it.
		for _, field := range strings.Fields(list) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// Below returns the children of a process and all that they have started, parents first.
func Below(pid int) (pids []int) {
	pids = Children(pid)
	for i := 0; i < len(pids); i++ {
		pids = append(pids, Children(pids[i])...)
	}
	return pids
}

// Name returns the name of a process's program.
func Name(pid int) string { return ask(pid, procfs.Proc.Comm) }

// Ended reports whether a process has ended and nothing has waited for it yet.
func Ended(pid int) bool { return ask(pid, procfs.Proc.Stat).State == "Z" }

// Words returns the command line of a process, with a zero byte after each word.
func Words(pid int) string {
	var line strings.Builder
	for _, word := range ask(pid, procfs.Proc.CmdLine) {
		line.WriteString(word + "\x00")
	}
	return line.String()
}

// Dir returns the working folder of a process.
func Dir(pid int) string { return ask(pid, procfs.Proc.Cwd) }

// Signals is a set of signals.
type Signals uint64

// Has reports whether a signal is in the set.
func (s Signals) Has(signal syscall.Signal) bool { return s&(1<<(signal-1)) != 0 }

// SignalSet returns a set of signals of a process by its name in proc_pid_status(5), such as
// SigCgt. procfs has no function for it.
func SignalSet(pid int, name string) (set Signals, ok bool) {
	for _, status := range readAll(pid, "status") {
		_, rest, _ := strings.Cut(status, "\n"+name+":\t")
		digits, _, _ := strings.Cut(rest, "\n")
		bits, err := strconv.ParseUint(digits, 16, 64)
		return Signals(bits), err == nil
	}
	return 0, false
}

// ReadsFrom reports whether a process waits for input from a file, its standard input: a thread's
// line in /proc begins with the number of the system call read (on x86-64, on arm64) and its first
// argument, 0. procfs has no function for it.
func ReadsFrom(pid int, path string) bool {
	stdin, err := os.Readlink(file(pid, "fd/0"))
	return err == nil && stdin == path && slices.ContainsFunc(readAll(pid, "task/*/syscall"), func(call string) bool {
		return strings.HasPrefix(call, "0 0x0 ") || strings.HasPrefix(call, "63 0x0 ")
	})
}

// ask returns what question finds out about a process; the zero value if that fails.
func ask[T any](pid int, question func(procfs.Proc) (T, error)) (answer T) {
	if p, err := procfs.NewProc(pid); err == nil {
		answer, _ = question(p)
	}
	return answer
}

// readAll returns the text of the files of a process that match pattern.
func readAll(pid int, pattern string) (texts []string) {
	paths, _ := filepath.Glob(file(pid, pattern)) // The pattern is valid.
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil {
			texts = append(texts, string(text))
		}
	}
	return texts
}

func file(pid int, name string) string {
	return filepath.Join(procfs.DefaultMountPoint, strconv.Itoa(pid), name)
}
