package executed

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"golang.org/x/sys/unix"

	"gonbatch/internal/rundir"
)

// spareFiles are the descriptors of the process of runSpare, from 3 on.
const (
	spareOut = iota + 3
	spareErr
	spareDisplay
	spareBack
	spareAlive
)

// errNoRecorder is the reason in the log if the recorder has died.
var errNoRecorder = errors.New("the recorder has died")

// startSpare starts the process that reads the program's pipes if the recorder dies. It has its own
// session, so that a signal that ends the program does not end it before it has read everything.
func (p *pipes) startSpare(command []string) error {
	if len(command) == 0 {
		return nil
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	for _, fd := range []*int{&p.out.read, &p.err.read, &p.display.read, &p.back.write, &p.alive.read} {
		file := take(fd)
		defer file.Close() //nolint:errcheck // the spare has its own
		cmd.ExtraFiles = append(cmd.ExtraFiles, file)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// runSpare waits until a program's recorder is done or dead. It replaces a dead one, because
// without a reader the program's next output would end the program. Text goes to the log, which is
// standard output; rich output is lost.
func runSpare(getenv func(string) string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE)
	if _, err := io.Copy(io.Discard, os.NewFile(spareAlive, "alive")); err != nil {
		return err
	}
	var files []*os.File
	for fd := spareOut; fd <= spareBack; fd++ {
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
		files = append(files, os.NewFile(uintptr(fd), fmt.Sprintf("fd-%d", fd)))
	}
	refuseDisplays(files[spareDisplay-spareOut], files[spareBack-spareOut])
	said := false
	return mergeTexts(files[0], files[1], nil, func(_ string, text []byte) {
		if !said {
			said = true
			_, _ = fmt.Fprintf(os.Stdout, lossNote, errNoRecorder)
			markLoss(getenv)
		}
		_, _ = os.Stdout.Write(text) // A full disk must not stop the program.
	})
}

// refuseDisplays makes the program's package gonbui give up: its next message fails, and a message
// that waits for an answer gets one. The answer begins a new stream, so only a program that has had
// no answer before can decode it; the invalid bytes after it end the wait of the others.
func refuseDisplays(display, back *os.File) {
	_ = display.Close()
	_ = back.SetWriteDeadline(time.Now().Add(time.Second))
	_ = gob.NewEncoder(back).Encode(&protocol.CommValue{Address: protocol.GonbuiSyncAckAddress, Value: 0})
	_, _ = back.Write([]byte{3, 0xff, 0xff, 0xff})
	_ = back.Close()
}

// markLoss records in the run directory that the notebook lacks output.
func markLoss(getenv func(string) string) {
	if env := rundir.ReadEnv(getenv); env.InRun() {
		_ = rundir.WriteFileAtomic(env.Dir.Unrecorded(), nil, 0o644) // The log says so too.
	}
}

// noteLoss adds a note to the notebook if it lacks output. The recorder must be locked.
func (r *Recorder) noteLoss() {
	if err := os.Remove(r.dir.Unrecorded()); err != nil {
		return
	}
	for _, c := range r.cells {
		if c.times.Status == running {
			c.tape.write("stderr", fmt.Appendf(nil, "\n[gonbatch: further output is only in %s: %v]\n", r.log, errNoRecorder))
			c.dirty, r.dirty = true, true
		}
	}
}
