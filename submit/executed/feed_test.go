package executed

import (
	"os"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
	"golang.org/x/sys/unix"
)

// TestSlowDisplays: rich output that is in the pipe when the program ends is shown, although the
// recorder is busy for a while, and another process keeps the pipe open.
func TestSlowDisplays(t *testing.T) {
	const messages = 200
	recorder := &Recorder{now: time.Now, shown: map[string]shown{}, cell: &bookCell{}}
	ends := make([]*os.File, 2*feedFiles)
	for i := 0; i < len(ends); i += 2 {
		var fds [2]int
		if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
			t.Fatal(err)
		}
		ends[i], ends[i+1] = os.NewFile(uintptr(fds[0]), "read"), os.NewFile(uintptr(fds[1]), "write")
		defer ends[i].Close()   //nolint:errcheck // the test is over
		defer ends[i+1].Close() //nolint:errcheck // the test is over
	}
	out, err, display, back, alive, log := ends[0:2], ends[2:4], ends[4:6], ends[6:8], ends[8:10], ends[10:12]
	f := newFeed(recorder, []*os.File{out[0], err[0], display[0], back[1], alive[1], log[1]})
	_, _ = out[1].Close(), err[1].Close()
	<-f.text
	recorder.mu.Lock()
	many := make([]map[protocol.MIMEType]any, messages)
	for i := range many {
		many[i] = map[protocol.MIMEType]any{protocol.MIMETextHTML: "<b>a display of a hundred bytes or so, which several reads of the pipe have to get, one after another</b>"}
	}
	text := encoded(t, many...)
	if n, err := display[1].Write(text); n != len(text) {
		t.Fatalf("%d of %d bytes fit into the pipe: %v", n, len(text), err)
	}
	waited := make(chan struct{})
	go func() {
		f.wait(time.Minute)
		close(waited)
	}()
	time.Sleep(time.Second) // The recorder is busy.
	recorder.mu.Unlock()
	<-waited
	if got := recorder.cell.tape.rich; got != messages {
		t.Errorf("%d of %d displays are shown", got, messages)
	}
}
