package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
)

// TestInterruptedCancel: Ctrl-C ends a cancel that waits for SLURM, and its lock goes: elsewhere,
// the next command would wait for it.
func TestInterruptedCancel(t *testing.T) {
	w := newWorld(t, 3)
	w.write("jobs/1", "RUNNING "+w.run.Script()+"\n")
	w.begin("1")
	w.write("bin/scontrol", "#!/bin/sh\nexec sleep 60\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := w.command(ctx, "cancel", w.run.Name())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	go func() {
		defer cancel()
		w.await(w.run.RunLock())
	}()
	if out, err := bounded.CombinedOutput(cmd); cmd.ProcessState.ExitCode() != 130 || !strings.Contains(string(out), "ended by a signal: interrupt") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := os.Stat(w.run.RunLock()); err == nil {
		t.Error("the lock is still there")
	}
}

// TestCancelledAtOnce: a cancel that is interrupted as it takes its lock says so, and releases it.
func TestCancelledAtOnce(t *testing.T) {
	w := newWorld(t, 5)
	w.write("jobs/1", "RUNNING "+w.run.Script()+"\n")
	t.Setenv("PATH", filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("WORLD", w.dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := newApp()
	var out, says strings.Builder
	a.Out, a.Err = &out, &says
	if code := execute(ctx, a, []string{"cancel", w.run.Path()}); code == 0 || out.Len() > 0 || !strings.Contains(says.String(), "context canceled") {
		t.Errorf("exit code %d, %q, %q", code, out.String(), says.String())
	}
	if _, err := os.Stat(w.run.RunLock()); err == nil {
		t.Error("the lock is still there")
	}
}

// TestDeadHostsLock: a command says that it waits for the record's lock, which a command on a
// machine that is gone has left, and can be interrupted.
func TestDeadHostsLock(t *testing.T) {
	w := newWorld(t, 8)
	w.write("jobs/1", "RUNNING "+w.run.Script()+"\n")
	w.begin("1")
	t.Setenv("PATH", filepath.Join(w.dir, "bin")+":"+os.Getenv("PATH"))
	t.Setenv("WORLD", w.dir)
	if err := os.WriteFile(filepath.Join(w.run.Path(), ".manifest.lock"), []byte(`{"host": "gone", "pid": 7, "token": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := newApp()
	says := &interrupter{interrupt: cancel}
	a.Err = says
	if code := execute(ctx, a, []string{"cancel", w.run.Path()}); code != 0 || !strings.HasSuffix(says.String(), "warning: manifest of run "+w.run.Name()+": lock "+w.run.Path()+"/.manifest.lock, which process 7 on gone holds: context canceled\n") {
		t.Errorf("exit code %d, %q", code, says.String())
	}
}

// interrupter is a user who interrupts a command that waits.
type interrupter struct {
	strings.Builder
	interrupt func()
}

func (i *interrupter) Write(text []byte) (int, error) {
	if strings.Contains(string(text), "waiting for process 7 on gone, which is changing the record of run ") {
		i.interrupt()
	}
	return i.Builder.Write(text)
}

// TestUnread: a command whose reader goes away, as in submit logs | head, ends without a word.
func TestUnread(t *testing.T) {
	w := newWorld(t, 6)
	w.write("jobs/1", "RUNNING "+w.run.Script()+"\n")
	if err := errors.Join(os.MkdirAll(w.run.Logs(), 0o755), os.WriteFile(w.run.RankLog(0), []byte("line\nline\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	w.begin("1")
	for words, want := range map[string]string{"status": "", "logs": "", "logs --json": "", "logs -f": "job 1 continues; cancel it with: submit cancel 1\n"} {
		reader, writer, err := os.Pipe()
		if err == nil {
			err = reader.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := w.command(t.Context(), append(strings.Fields(words), w.run.Path())...)
		var says strings.Builder
		cmd.Stdout, cmd.Stderr = writer, &says
		_ = bounded.Run(cmd) // Its exit code says more.
		if code := cmd.ProcessState.ExitCode(); code != 141 || says.String() != want {
			t.Errorf("%s: exit code %d, %q, want 141 and %q", words, code, says.String(), want)
		}
		_ = writer.Close()
	}
}

// TestStopsWaitingForSbatch: a second Ctrl-C ends a command that waits for sbatch, and it says that
// the job may be queued.
func TestStopsWaitingForSbatch(t *testing.T) {
	w := newWorld(t, 7)
	w.write("jobs/1", "FAILED "+w.run.Script()+"\n")
	w.begin("1")
	w.set("1", "FAILED")
	w.write("bin/sbatch", "#!/bin/sh\n[ \"$1\" != --test-only ] || exit 0\ntouch \"$WORLD/asked\"; exec sleep 60\n")
	cmd := w.command(t.Context(), "resume", w.run.Name())
	go func() {
		w.await(filepath.Join(w.dir, "asked"))
		for range 2 {
			_ = cmd.Process.Signal(os.Interrupt) // Without it, the test takes a minute and fails.
			time.Sleep(300 * time.Millisecond)
		}
	}()
	if out, err := bounded.CombinedOutput(cmd); cmd.ProcessState.ExitCode() != 130 || !strings.Contains(string(out), "interrupt again to stop waiting") || !strings.Contains(string(out), "sbatch has not said whether SLURM has the job") {
		t.Errorf("%v: %s", err, out)
	}
}
