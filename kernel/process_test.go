package kernel

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
)

// alone runs a test in a process of its own, because of what it does to all of its children, and
// reports whether this is that process.
func alone(t *testing.T) bool {
	t.Helper()
	if os.Getenv("TEST_ALONE") != "" {
		return true
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "TEST_ALONE=1")
	if out, err := bounded.CombinedOutput(cmd); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// TestRunTree: a command's end is noticed, and its orphan killed, though the orphan holds the
// command's output open.
func TestRunTree(t *testing.T) {
	if !alone(t) {
		return
	}
	for script, want := range map[string]string{"sleep 3600 & echo out; exit 3": "exit status 3", "sleep 3600 & echo out": ""} {
		var out bytes.Buffer
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.Stdout = &out
		got := ""
		if err := runTree(t.Context(), cmd, time.Second); err != nil {
			got = err.Error()
		}
		if got != want || out.String() != "out\n" || len(children()) > 0 {
			t.Errorf("%s: %q, put out %q, children %v", script, got, out.String(), children())
		}
	}
}

// TestReapOrphans: orphans that end don't stay as zombies until the session's end.
func TestReapOrphans(t *testing.T) {
	if !alone(t) {
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(5*orphanPoll, cancel) // after the look below
	cmd := exec.CommandContext(ctx, "sh", "-c", "for i in 1 2 3; do (sleep 0.1 &) ; done; exec sleep 3600")
	left := make(chan []int, 1)
	time.AfterFunc(4*orphanPoll, func() { left <- children() })
	if err := runTree(ctx, cmd, time.Second); err != nil {
		t.Error(err)
	}
	if left := <-left; !slices.Equal(left, []int{cmd.Process.Pid}) {
		t.Errorf("children %v, want the command %d", left, cmd.Process.Pid)
	}
}

// TestInterruptBetween: an interrupt that comes just before one of the cell's wrappers starts the
// next one, or the command, reaches the command, but not again and again if that catches it.
func TestInterruptBetween(t *testing.T) {
	if !alone(t) {
		return
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Each waits until it may go on.
	pause := "trap : INT; touch %s/at-%d; while [ ! -e %s/go-%d ]; do sleep 0.01; done\n"
	for stop := range 3 {
		for _, command := range []string{"trap : INT; exec sleep 3600", "n=0; trap 'n=$((n + 1))' INT; while [ $n = 0 ]; do sleep 0.01; done; sleep 0.5; echo $n >" + dir + "/count"} {
			at := func(i int) string {
				if i != stop {
					return "trap : INT\n"
				}
				return fmt.Sprintf(pause, dir, i, dir, i)
			}
			run := write("command", command)
			stream := write("stream", at(2)+run+"\n")
			status := write("status", at(1)+stream+" kernel stream -- x\n")
			gonb := exec.Command(write("gonb", at(0)+status+"\n"))
			if err := gonb.Start(); err != nil {
				t.Fatal(err)
			}
			for !exists(filepath.Join(dir, fmt.Sprint("at-", stop))) {
				time.Sleep(time.Millisecond)
			}
			again := interrupt()
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("go-", stop)), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() { _ = gonb.Wait(); close(ended) }() // An interrupt may have ended it.
			insist(t, again, ended)
			if count, err := os.ReadFile(filepath.Join(dir, "count")); err == nil && string(count) != "1\n" && string(count) != "2\n" { // Just as it starts, it may get two.
				t.Errorf("a command that catches interrupts had %q", count)
			}
			for _, name := range []string{"at-", "go-"} {
				_ = os.Remove(filepath.Join(dir, fmt.Sprint(name, stop)))
			}
		}
	}
}

// insist interrupts until the processes have ended.
func insist(t *testing.T, again func(), ended <-chan struct{}) {
	t.Helper()
	limit := time.After(5 * time.Minute)
	for {
		select {
		case <-ended:
			return
		case <-limit:
			t.Fatal("the interrupted command runs on")
		case <-time.After(20 * time.Millisecond):
			again()
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestInterruptBesides: a command that the kernel runs alongside the cells is not interrupted.
func TestInterruptBesides(t *testing.T) {
	if !alone(t) {
		return
	}
	script := filepath.Join(t.TempDir(), "submit")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec 3<&0\nread -r line <&3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"cancel", "4711"}, {"status", "--json", "4711"}, {"logs", "4711"}} {
		cmd := exec.Command(script, args...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		interrupt()
		if args[0] == "logs" {
			if err := cmd.Wait(); err == nil {
				t.Errorf("%q was not interrupted", args)
			}
			continue
		}
		_, _ = in.Write([]byte("line\n"))
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}
