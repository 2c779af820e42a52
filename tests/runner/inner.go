package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"gonbatch/internal/proc"
)

// inner runs the command, ends all that it leaves behind and returns its exit code.
func inner(kind string, command []string) (code int, err error) {
	// Only outer sends it signals. The tests are to have none that is ignored, even under nohup.
	received := stops(func(os.Signal) bool { return true })
	if err := os.Unsetenv(isInner); err != nil {
		return 1, err
	}
	if kind == withNamespaces {
		err = ownMounts()
	} else {
		err = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	}
	if err != nil {
		return 1, fmt.Errorf("prepare for the tests: %w", err)
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return 127, err
	}
	pid, err := syscall.ForkExec(path, command, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 1, fmt.Errorf("start %s: %w", path, err)
	}
	go func() {
		for s := range received {
			_ = syscall.Kill(-pid, s.(syscall.Signal)) // Like a terminal, to all of the process group.
			if s != syscall.SIGINT {                   // By Ctrl-C, one who waits asks for a summary.
				time.AfterFunc(grace, func() { _ = syscall.Kill(-pid, syscall.SIGKILL) })
			}
		}
	}()
	code = reap(pid)
	if left := endAll(grace); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "runner: ended what outlived the tests: %s\n", strings.Join(left, ", "))
	}
	return code, nil
}

// ownMounts gives this process and those below it mounts of their own: the file system proc shows
// only them, and the files by which network namespaces are found end with them.
func ownMounts() error {
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("proc", procfs.DefaultMountPoint, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", procfs.DefaultMountPoint, err)
	}
	for _, folder := range []string{"/run/netns", "/etc/netns"} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", folder, err)
		}
	}
	return nil
}

// reap waits for a child, as init does also for orphans, and returns its exit code, or 128 plus the
// number of the signal that ended it.
func reap(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return 1 // It can't happen: the child is not waited for elsewhere.
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal())
		case ended == pid:
			return status.ExitStatus()
		}
	}
}

// endAll waits this long for all processes below this one to end, kills those that haven't, and
// returns their names. It gives up what it can't kill: another user's processes.
func endAll(grace time.Duration) []string {
	const pause = 10 * time.Millisecond
	names := make(map[int]string)
	for begin := time.Now(); ; time.Sleep(pause) {
		for ended := 1; ended > 0; { // A process that has ended stays in /proc until it is waited for.
			ended, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
		left := proc.Below(os.Getpid())
		if len(left) == 0 || time.Since(begin) > limit {
			return slices.Sorted(maps.Values(names))
		}
		for _, pid := range left {
			if name := proc.Name(pid); time.Since(begin) >= grace && syscall.Kill(pid, syscall.SIGKILL) == nil {
				names[pid] = name
			}
		}
	}
}
