package executed

import (
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// feed copies the output of one program to the recorder, and its text to the log too.
type feed struct {
	recorder                      *Recorder
	out, err, display, alive, log *os.File
	backLock                      sync.Mutex
	back                          *os.File
	answers                       *gob.Encoder
	text, all                     chan struct{} // closed when the text, and when all output, has ended
	stop                          chan struct{} // closed when nothing waits for more text
}

// newFeed reads from the files of an attach request until they end.
func newFeed(r *Recorder, files []*os.File) *feed {
	f := &feed{
		recorder: r, out: files[0], err: files[1], display: files[2], back: files[3], alive: files[4], log: files[5],
		text: make(chan struct{}), all: make(chan struct{}), stop: make(chan struct{}),
	}
	f.answers = gob.NewEncoder(f.back)
	displays := make(chan struct{})
	go func() {
		defer close(displays)
		f.copyDisplays()
	}()
	go func() {
		if err := mergeTexts(f.out, f.err, f.stop, f.copyText); err != nil {
			f.tell(err.Error())
		}
		r.outputEnded()
		_ = f.log.Close() // Whoever waits for the end of the log need not wait for the rest.
		close(f.text)
		<-displays
		_ = f.alive.Close()
		close(f.all)
	}()
	return f
}

// copyText copies text to the log and to the recorder. A full disk under the log does not stop the
// program.
func (f *feed) copyText(stream string, text []byte) {
	_, _ = f.log.Write(text)
	f.recorder.write(stream, text)
}

// copyDisplays shows the rich output. It continues after a message that it can't decode, so
// that the program doesn't block.
func (f *feed) copyDisplays() {
	defer f.display.Close() //nolint:errcheck // only read
	if err := readDisplays(f.display, f); err != nil {
		f.tell(err.Error())
		_, _ = io.Copy(io.Discard, f.display)
	}
	f.backLock.Lock()
	defer f.backLock.Unlock()
	_ = f.back.Close()
}

// wait waits for the end of the output, at most for the limit.
func (f *feed) wait(limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-f.text:
	case <-timer.C:
		close(f.stop)
		<-f.text
	}
	f.endDisplays()
	<-f.all
}

// displayPatience is how long rich output may take to be shown after the program's end.
const displayPatience = 10 * time.Second

// endDisplays ends the reading of rich output when all of it is read. The program has ended and its
// rich output is in the pipe; a process that it left behind may keep the pipe open.
func (f *feed) endDisplays() {
	for end := time.Now().Add(displayPatience); hasData(f.display) && time.Now().Before(end); time.Sleep(time.Millisecond) {
	}
	_ = f.display.SetReadDeadline(time.Now())
}

// show, tell and synced implement screen.
func (f *feed) show(id string, output json.RawMessage) { f.recorder.show(id, output) }

func (f *feed) tell(line string) {
	f.recorder.write("stderr", fmt.Appendf(nil, "[gonbatch: %s]\n", line))
}

func (f *feed) synced(id int) {
	f.backLock.Lock()
	defer f.backLock.Unlock()
	_ = f.back.SetWriteDeadline(time.Now().Add(time.Second)) // A program that doesn't read its answers doesn't need them.
	_ = f.answers.Encode(&protocol.CommValue{Address: protocol.GonbuiSyncAckAddress, Value: id})
}
