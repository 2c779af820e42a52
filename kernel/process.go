package kernel

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/internal/proc"
)

// runTree runs a command of ctx until it ends, and then kills every process that it leaves behind.
// When ctx ends, the command gets SIGTERM and, after grace, SIGKILL; that is not an error. After
// the command's end, its output is read for as long, if a process that it has left behind holds it
// open. If this process is killed, the operating system sends the command SIGTERM.
func runTree(ctx context.Context, cmd *exec.Cmd, grace time.Duration) error {
	// Linux signals the child when the thread that started it ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Orphans of the command become children of this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	before := children()
	cmd.SysProcAttr, cmd.WaitDelay = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}, grace
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); ctx.Err() != nil && err != nil {
		return nil
	} else if err != nil {
		return err
	}
	ended := make(chan struct{})
	go reapOrphans(cmd.Process.Pid, ended)
	err := cmd.Wait()
	close(ended)
	killOrphans(before)
	if ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// killOrphans kills the children that this process did not have before, and then their children,
// which become children of this process in turn.
func killOrphans(before []int) {
	for {
		killed := 0
		for _, pid := range children() {
			if slices.Contains(before, pid) {
				continue
			}
			_ = syscall.Kill(pid, syscall.SIGKILL)
			_, _ = syscall.Wait4(pid, nil, 0, nil)
			killed++
		}
		if killed == 0 {
			return
		}
	}
}

// orphanPoll is how often a session collects orphans that have ended.
const orphanPoll = time.Second

// reapOrphans collects the orphans of a command that have ended, as init would, until `ended` is
// closed. This process's own children are collected by those who have started them, at once.
func reapOrphans(command int, ended <-chan struct{}) {
	ticker := time.NewTicker(orphanPoll)
	defer ticker.Stop()
	for before := []int(nil); ; {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		dead := slices.DeleteFunc(children(), func(pid int) bool { return pid == command || !proc.Ended(pid) })
		for _, pid := range dead {
			if slices.Contains(before, pid) {
				_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil)
			}
		}
		before = dead
	}
}

// children returns the child processes of this process.
func children() []int { return proc.Children(os.Getpid()) }

// workDir returns the folder in which cells run: GoNB's working folder.
func (s *session) workDir() string {
	for _, pid := range gonbs() {
		if dir := proc.Dir(pid); dir != "" {
			return dir
		}
	}
	return notebookDir()
}

// notebookDir returns the notebook's folder: Jupyter starts a kernel there.
func notebookDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return "."
	}
	return dir
}

// interruption is a client's request to end the running cell.
type interruption struct {
	// reached are the command lines of the processes that have been interrupted. A process with
	// another one now has become another program since, which may not have noticed: a shell's child
	// forgets an interrupt that comes before it starts its program.
	reached map[int]string
}

// interrupt sends SIGINT to all descendants of this process: GoNB, which ends the cell, and the
// cell's whole process tree. It leaves out gopls, which also works for later cells, and what the
// kernel runs beside the cells.
//
// again interrupts what was started for the cell since: between the steps of a cell, GoNB forgets
// an interrupt, and so does a shell that was just about to start the cell's command. A process that
// is already ending is not interrupted twice, nor is what it starts for that.
func interrupt() (again func()) {
	i := &interruption{reached: map[int]string{}}
	for _, pid := range children() {
		if !hasWords(pid, besides) {
			i.tree(pid)
		}
	}
	return i.again
}

func (i *interruption) again() {
	parents := gonbs()
	fresh := false
	for pid := range startedBy(parents) {
		before, reached := i.reached[pid]
		switch now := proc.Words(pid); {
		case now == "": // It has ended.
		case !reached || now != before:
			fresh = true
			i.tree(pid)
		case endsOfInterrupt(pid): // It would have ended: the interrupt was lost as it started.
			_ = syscall.Kill(pid, syscall.SIGINT)
		}
	}
	if !fresh {
		return
	}
	for _, pid := range parents {
		_ = syscall.Kill(pid, syscall.SIGINT)
	}
}

func (i *interruption) tree(pid int) {
	if name := proc.Name(pid); name == "" || name == "gopls" {
		return
	}
	for _, child := range proc.Children(pid) {
		i.tree(child)
	}
	i.reached[pid] = proc.Words(pid) // Before the signal: better twice than never.
	_ = syscall.Kill(pid, syscall.SIGINT)
}

// gonbs returns the GoNB processes that this process has started.
func gonbs() (pids []int) {
	for _, pid := range children() {
		if proc.Name(pid) == "gonb" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// startedBy returns what the GoNB processes have started for a cell: their children, and below them
// each wrapper with what it runs, which is the cell's program, its ranks or a shell command.
func startedBy(parents []int) map[int]bool {
	started := map[int]bool{}
	for _, parent := range parents {
		for _, pid := range proc.Children(parent) {
			started[pid] = true
			addWrapped(started, pid)
		}
	}
	return started
}

// addWrapped adds the wrappers among pid and its descendants, and the children of each.
func addWrapped(found map[int]bool, pid int) {
	wraps := isWrapper(pid)
	found[pid] = found[pid] || wraps
	for _, child := range proc.Children(pid) {
		if wraps {
			found[child] = true
		}
		if !wraps || isWrapper(child) {
			addWrapped(found, child)
		}
	}
}

// wrappers are words in the command lines of the programs that run what a cell starts and survive
// an interrupt: `kernel stream`, and the script that starts ranks.
var wrappers = []string{"\x00kernel\x00stream\x00--\x00", ranksProgram + "\x00"}

func isWrapper(pid int) bool { return hasWords(pid, wrappers) }

// besides are words in the command lines of what the kernel runs beside the cells, for the cards of
// jobs: submit status, and submit cancel when the user presses the button.
var besides = []string{"\x00status\x00--json\x00", "\x00cancel\x00"}

// hasWords reports whether a process's command line has any of the words.
func hasWords(pid int, words []string) bool {
	line := proc.Words(pid)
	return slices.ContainsFunc(words, func(words string) bool { return strings.Contains(line, words) })
}

// Times for GoNB to notice a signal: at most settleTime until the system has delivered it, and
// settlePause from GoNB's handler to its cell.
const (
	settleTime  = 5 * time.Second
	settlePause = 10 * time.Millisecond
)

// settle waits until GoNB has noticed the interrupts that it was sent.
func settle() {
	for end := time.Now().Add(settleTime); slices.ContainsFunc(gonbs(), interruptPending) && time.Now().Before(end); {
		time.Sleep(settlePause)
	}
	time.Sleep(settlePause)
}

// interruptPending reports whether a process has been sent SIGINT and has not noticed it yet.
func interruptPending(pid int) bool {
	pending, _ := proc.SignalSet(pid, "ShdPnd")
	return pending.Has(syscall.SIGINT)
}

// endsOfInterrupt reports whether SIGINT ends a process at once: it neither catches nor ignores it.
func endsOfInterrupt(pid int) bool {
	for _, name := range []string{"SigCgt", "SigIgn", "SigBlk"} {
		if set, ok := proc.SignalSet(pid, name); !ok || set.Has(syscall.SIGINT) {
			return false
		}
	}
	return true
}

// waitsForInput reports whether a descendant of this process is reading its standard input, and
// that is the pipe.
func waitsForInput(pipe string) bool {
	pipe, err := filepath.EvalSymlinks(pipe)
	return err == nil && slices.ContainsFunc(proc.Below(os.Getpid()), func(pid int) bool { return proc.ReadsFrom(pid, pipe) })
}
