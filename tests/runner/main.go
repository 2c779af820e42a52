// Command runner runs a test command, so that nothing that it starts outlives it, and says four
// times a minute how far the tests are. make test uses it, with its own process ID:
//
//	runner 1234 gotestsum -- -short ./...
//
// However the run ends, also by kill -9 of make, of runner or of both, all of its processes end
// within seconds: daemons with their own session, browsers, ranks. (Without namespaces, see below,
// one of the two must live to do so.) There are two of runner:
//
//	make ── outer ── inner ── gotestsum ── tests
//
// The kernel tells outer when make has died, and inner when outer has (PR_SET_PDEATHSIG). Inner
// then ends everything below it. Orphans stay below it, because it is their init. As root, inner
// has its own process and mount namespaces, which end with it, with all mounts and named network
// namespaces. Elsewhere both are subreapers (PR_SET_CHILD_SUBREAPER), so that outer can end what
// is left if inner has died. See pid_namespaces(7) and prctl(2).
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// isInner marks the second runner: it says whether that has namespaces.
const isInner = "INNER_TEST_RUNNER"

// The values of isInner.
const (
	withNamespaces = "namespaces"
	withSubreaper  = "subreaper"
)

// grace is how long the command has to end after SIGTERM, and what it leaves behind after its end.
const grace = 3 * time.Second

// limit is how long the runner tries to end processes that it may not end, or that don't end.
const limit = 30 * time.Second

// stops returns a channel with the signals that end a run.
func stops(heed func(os.Signal) bool) <-chan os.Signal {
	received := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if heed(s) {
			signal.Notify(received, s)
		}
	}
	return received
}

// The kernel sends a signal when the thread that started a process ends, so main, which starts
// them, stays on the first thread.
func init() { runtime.LockOSThread() }

func main() {
	var parent int
	var err error
	if len(os.Args) > 2 {
		parent, err = strconv.Atoi(os.Args[1])
	}
	if parent == 0 || err != nil {
		fmt.Fprintln(os.Stderr, "usage: runner PARENT-PID COMMAND [ARGUMENT...]")
		os.Exit(2)
	}
	var code int
	if kind := os.Getenv(isInner); kind != "" {
		code, err = inner(kind, os.Args[2:])
	} else {
		code, err = outer(parent, os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "runner:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// outer starts inner, passes it signals, shows progress and returns the command's exit code.
func outer(parent int, command []string) (code int, err error) {
	// It goes on ignoring what it was told to ignore, as by nohup.
	received := stops(func(s os.Signal) bool { return !signal.Ignored(s) })
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGTERM), 0, 0, 0); err != nil {
		return 1, fmt.Errorf("learn of the parent's end: %w", err)
	}
	if os.Getppid() != parent {
		return 1, fmt.Errorf("process %d, which was to start this one, isn't its parent or has ended", parent)
	}
	events := os.Getenv(eventsFile)
	if events != "" {
		_ = os.Remove(events) // Those of an earlier run.
	}
	pid, err := startInner(command)
	if err != nil {
		return 1, err
	}
	go func() {
		for s := range received {
			_ = syscall.Kill(pid, s.(syscall.Signal))
			if s != syscall.SIGINT { // The init of a namespace misses signals as long as it begins.
				time.AfterFunc(3*grace, func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
			}
		}
	}()
	if events != "" {
		go showProgress(os.Stdout, events, lineEvery)
	}
	code = reap(pid)
	endAll(0) // If inner was killed.
	return code, nil
}

// startInner starts this program again: in namespaces if it may have them, or as a subreaper.
func startInner(command []string) (pid int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	start := func(kind string, namespaces uintptr, orphaned syscall.Signal, command ...string) (int, error) {
		return syscall.ForkExec(self, append([]string{self, strconv.Itoa(os.Getpid())}, command...), &syscall.ProcAttr{
			Env:   append(os.Environ(), isInner+"="+kind),
			Files: []uintptr{0, 1, 2},
			// With its own process group, what ends outer's whole group doesn't end inner.
			Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned, Cloneflags: namespaces},
		})
	}
	if os.Geteuid() == 0 {
		const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
		if pid, err := start(withNamespaces, namespaces, syscall.SIGKILL, "true"); err == nil && reap(pid) == 0 {
			return start(withNamespaces, namespaces, syscall.SIGKILL, command...)
		}
		fmt.Fprintln(os.Stderr, "runner: no namespaces here: processes that outlive the tests are ended, mounts are not")
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become a subreaper: %w", err)
	}
	return start(withSubreaper, 0, syscall.SIGTERM, command...)
}
