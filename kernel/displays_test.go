package kernel

import (
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// TestDisplaysAreShown: a program sends displays and ends at once. GoNB, which opens its end late
// and is slow, has shown all of them before its end is noticed.
func TestDisplaysAreShown(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		path := filepath.Join(t.TempDir(), "displays")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		var shown atomic.Int32
		opened, ended := make(chan bool, 1), make(chan error, 1)
		go func() { ended <- slowReader(path, opened, &shown) }()
		displays := openDisplays(path)
		sendDisplays(t, path, n)
		displays.drain()
		if got := int(shown.Load()); got != n {
			t.Errorf("%d of %d displays were shown before the program's end", got, n)
		}
		unblock(t, path, opened)
		if err := <-ended; !errors.Is(err, io.EOF) || shown.Load() != int32(n) {
			t.Errorf("the reader ends after %d of %d displays: %v, want EOF", shown.Load(), n, err)
		}
	}
}

// TestDisplaysOfKilledProgram: the displays of a program that a signal ends are shown too.
func TestDisplaysOfKilledProgram(t *testing.T) {
	dir := t.TempDir()
	path, sent := filepath.Join(dir, "displays"), filepath.Join(dir, "sent")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(sent, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sendDisplays(t, sent, 3)
	var shown atomic.Int32
	opened, ended := make(chan bool, 1), make(chan error, 1)
	go func() { ended <- slowReader(path, opened, &shown) }()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "kernel", "stream", "--", "sh", "-c", `cat "$0" >"$1"; kill -KILL $$`, sent, path)
	cmd.Env = append(os.Environ(), protocol.GONB_PIPE_ENV+"="+path)
	output, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("the command ends with %v, want SIGKILL: %s", err, output)
	}
	if got := shown.Load(); got != 3 {
		t.Errorf("%d of 3 displays were shown before the program's end", got)
	}
	unblock(t, path, opened)
	if err := <-ended; !errors.Is(err, io.EOF) {
		t.Errorf("the reader ends: %v, want EOF", err)
	}
}

// slowReader shows displays as GoNB does, and returns the reason why it ends.
func slowReader(path string, opened chan<- bool, shown *atomic.Int32) error {
	time.Sleep(100 * time.Millisecond)
	pipe, err := os.Open(path)
	if err != nil {
		return err
	}
	defer pipe.Close() //nolint:errcheck // the test is over
	opened <- true
	for decoder := gob.NewDecoder(pipe); ; shown.Add(1) {
		if err := decoder.Decode(&protocol.DisplayData{}); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// unblock ends a reader that still waits for a program, as GoNB does.
func unblock(t *testing.T, path string, opened <-chan bool) {
	t.Helper()
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	<-opened
	if err := pipe.Close(); err != nil {
		t.Error(err)
	}
}

func sendDisplays(t *testing.T, path string, n int) {
	t.Helper()
	if n == 0 {
		return
	}
	pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	encoder := gob.NewEncoder(pipe)
	for range n {
		if err := encoder.Encode(&protocol.DisplayData{Data: map[protocol.MIMEType]any{protocol.MIMETextHTML: "<b>shown</b>"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNoDisplays: a command without a pipe for displays, or whose pipe is gone, ends at once.
func TestNoDisplays(t *testing.T) {
	openDisplays("").drain()
	openDisplays(filepath.Join(t.TempDir(), "gone")).drain()
}
