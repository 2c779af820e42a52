package executed

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"golang.org/x/sys/unix"

	"gonbatch/internal/rundir"
)

// errNoRecorder is the reason in the log if the recorder has died.
var errNoRecorder = errors.New("the recorder has died")

// spare reads the program's pipes in place of a recorder that dies: without a reader, the program's
// next output would end it. Text goes to the log, which is this process's standard output; rich
// output is lost.
type spare struct {
	out, err, display, back, alive *os.File
	reads, stop, over              chan struct{}
}

// newSpare takes the ends of the pipes that a spare needs.
func (p *pipes) newSpare(run rundir.Env) *spare {
	_ = unix.SetNonblock(p.alive.read, true) // For its deadline.
	s := &spare{out: take(&p.out.read), err: take(&p.err.read), display: take(&p.display.read), back: take(&p.back.write), alive: take(&p.alive.read),
		reads: make(chan struct{}), stop: make(chan struct{}), over: make(chan struct{})}
	go s.run(run)
	return s
}

// run waits until the recorder is done or dead, and replaces a dead one.
func (s *spare) run(run rundir.Env) {
	defer close(s.over)
	if !s.orphaned() {
		return
	}
	close(s.reads)
	for _, file := range []*os.File{s.out, s.err, s.display, s.back} {
		if fd, err := rawFd(file); err == nil {
			_ = unix.SetNonblock(int(fd), true) // Reading works anyway, in turn.
		}
	}
	refuseDisplays(s.display, s.back)
	said := false
	_ = mergeTexts(s.out, s.err, s.stop, func(_ string, text []byte) { // An error would end the program, as without a spare.
		if !said {
			said = true
			_, _ = fmt.Fprintf(os.Stdout, lossNote, errNoRecorder)
			markLoss(run)
		}
		_, _ = os.Stdout.Write(text) // A full disk must not stop the program.
	})
}

// orphaned waits for the recorder's end, or until the program has ended, and reports whether the
// recorder has. A recorder that has been killed may end after the program: if it lives, it reads.
func (s *spare) orphaned() bool {
	if _, err := s.alive.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	fd, err := rawFd(s.alive)
	if err != nil {
		return true
	}
	for began := time.Now(); time.Since(began) < unreadTime; time.Sleep(10 * time.Millisecond) {
		if _, err := unix.Read(int(fd), make([]byte, 1)); !errors.Is(err, unix.EAGAIN) {
			return true
		}
		if !hasData(s.out) && !hasData(s.err) {
			return false
		}
	}
	return false
}

// unreadTime is how long a recorder that lives may take to read what a program has printed last.
const unreadTime = 10 * time.Second

// leftTime is how long processes that a program has left running may hold its pipes.
const leftTime = time.Second

// end waits until everything is in the log, after the program's end. If the recorder lives, that is
// not this process's work.
func (s *spare) end() {
	_ = s.alive.SetReadDeadline(time.Now())
	select {
	case <-s.over:
		return
	case <-s.reads:
	}
	select {
	case <-s.over:
	case <-time.After(leftTime):
		close(s.stop)
		<-s.over
	}
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
func markLoss(run rundir.Env) {
	if run.InRun() {
		_ = rundir.WriteFileAtomic(run.Dir.Unrecorded(), nil, 0o644) // The log says so too.
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
