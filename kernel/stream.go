package kernel

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"golang.org/x/sys/unix"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/relay"
)

// streamPiece is how much of a cell's output GoNB reads at once.
const streamPiece = 32 << 10

// stream runs a command of a cell until it ends, and returns its exit code. GoNB turns everything
// that it reads at once into a message, and loses a character whose bytes are split between two
// messages. So stream passes on the command's output one piece at a time, and each piece ends with
// a whole character.
func stream(command []string, cellDir string, environ []string) (code int, err error) {
	if len(command) == 0 {
		return 0, errors.New("kernel stream: want a command: the kernel calls this itself")
	}
	// The kernel interrupts the command itself.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT)
	runtime.LockOSThread() // Linux signals the child when the thread that started it ends.
	defer runtime.UnlockOSThread()
	// GoNB kills a command that an interrupt does not end. Then this process must end too, and
	// close the pipes that GoNB is reading.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return 0, os.NewSyscallError("prctl", err)
	}
	ranks, err := ranksOf(command, cellDir, environment(environ).get)
	if err == nil {
		err = shareKept(environment(environ).get(rundir.EnvKeepDir), ranks)
	}
	if err != nil {
		return 0, err
	}
	if isProgram(command) {
		command = slices.Clone(command)
		for i := range command[1:] {
			command[1+i] = ungarbled(command[1+i])
		}
	}
	environ = ungarbledEnviron(environ, relay.Environ(cellDir))
	cmd := exec.Command(command[0], command[1:]...)
	train := newTraining(command, cellDir, environ)
	place := train.variable(os.Stderr)
	cmd.Env = append(slices.Clone(environ), place...)
	cmd.Stdin, cmd.SysProcAttr = os.Stdin, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	shown := openDisplays(environment(environ).get(protocol.GONB_PIPE_ENV))
	pace := newPace(cellDir)
	var copied sync.WaitGroup
	var ends []io.Closer
	for target, source := range map[*os.File]*io.Writer{os.Stdout: &cmd.Stdout, os.Stderr: &cmd.Stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		*source, ends = w, append(ends, w)
		copied.Go(func() { copyCharacters(target, r, pace) })
	}
	err = cmd.Start()
	for _, end := range ends {
		_ = end.Close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 127, nil
	}
	copied.Wait()
	err = cmd.Wait()
	shown.drain() // Before the end, which may be a signal's.
	train.note(place)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return 0, err
	}
	return endAs(cmd.ProcessState), nil
}

// endAs ends this process with the signal that ended the other process, or returns the other's exit
// code.
func endAs(state *os.ProcessState) int {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return state.ExitCode()
	}
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}) // The command has written its own core file.
	signal.Reset(status.Signal())
	_ = syscall.Kill(os.Getpid(), status.Signal())
	return 128 + int(status.Signal())
}

// copyCharacters copies in pieces that end with whole characters. Invalid bytes are copied
// unchanged.
func copyCharacters(target *os.File, source io.Reader, pace *pace) {
	buffer, kept := make([]byte, streamPiece), 0
	for {
		n, err := source.Read(buffer[kept:])
		n += kept
		end := n
		if err == nil {
			end = wholeCharacters(buffer[:n])
		}
		if end > 0 {
			pace.wait(end)
			waitUntilRead(int(target.Fd()), endless)
			if _, writeErr := target.Write(buffer[:end]); writeErr != nil {
				return
			}
		}
		if err != nil {
			return
		}
		kept = copy(buffer, buffer[end:n])
	}
}

// wholeCharacters returns the length of the text without an incomplete character at its end.
func wholeCharacters(text []byte) int {
	for i := len(text) - 1; i >= max(0, len(text)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(text[i]) {
			if !utf8.FullRune(text[i:]) {
				return i
			}
			break
		}
	}
	return len(text)
}
