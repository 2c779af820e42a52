package compilecache_test

import (
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gonbatch/internal/compilecache"
)

// TestOnce: if several processes start at once, one compiles.
func TestOnce(t *testing.T) {
	const processes = 8
	dir := t.TempDir()
	var starts []io.Closer
	var children []*exec.Cmd
	var outputs []io.Reader
	for range processes {
		cmd, start, out := waitingChild(t, dir)
		children, starts, outputs = append(children, cmd), append(starts, start), append(outputs, out)
	}
	for _, start := range starts {
		if err := start.Close(); err != nil {
			t.Fatal(err)
		}
	}
	compiled := 0
	for i, cmd := range children {
		text, err := io.ReadAll(outputs[i])
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if err != nil {
			t.Error(err)
		}
		compiled += strings.Count(string(text), "compiled true\n")
	}
	if compiled != 1 {
		t.Errorf("%d of %d processes have compiled", compiled, processes)
	}
}

// TestKilledHolder: the lock of a process that was killed while it compiled blocks nobody.
func TestKilledHolder(t *testing.T) {
	dir := t.TempDir()
	cmd, out := child(t, "hold", dir)
	if line, err := out.ReadString('\n'); err != nil || line != "compiling\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	c := open(t, dir, compilecache.Limit)
	wantCompiled(t, c, 0, true)
	wantCompiled(t, c, 0, false)
}

// TestStoppedHolder: nobody waits forever for a compiling process that has stopped responding.
func TestStoppedHolder(t *testing.T) {
	compilecache.SetSilence(t)
	dir := t.TempDir()
	cmd, out := child(t, "hold", dir)
	if line, err := out.ReadString('\n'); err != nil || line != "compiling\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c := open(t, dir, compilecache.Limit)
	wantCompiled(t, c, 0, true)
	wantCompiled(t, c, 0, false)
}

// TestSlowHolder: nobody waits for a process that compiles forever.
func TestSlowHolder(t *testing.T) {
	compilecache.SetPatience(t)
	dir := t.TempDir()
	_, out := child(t, "hold", dir)
	if line, err := out.ReadString('\n'); err != nil || line != "compiling\n" {
		t.Fatalf("%q, %v", line, err)
	}
	c := open(t, dir, compilecache.Limit)
	wantCompiled(t, c, 0, true)
	wantCompiled(t, c, 0, false)
}

// waitingChild starts a process that gets program 0 when start is closed.
func waitingChild(t *testing.T, dir string) (cmd *exec.Cmd, start io.Closer, out io.Reader) {
	t.Helper()
	cmd, start, buffered := startChild(t, "compile", dir)
	if line, err := buffered.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd, start, buffered
}
