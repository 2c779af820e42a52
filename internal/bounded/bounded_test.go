package bounded

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv("TEST_HANG") != "" {
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// TestHang: a command that hangs, and a process that it leaves behind, are ended, and a Go program
// shows its goroutines.
func TestHang(t *testing.T) {
	for name, script := range map[string]string{
		"itself":      `TEST_HANG=1 "$0"`,
		"left behind": `TEST_HANG=1 setsid "$0" & exit 0`,
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := exec.Command("sh", "-c", script, os.Args[0])
			cmd.Stdout, cmd.Stderr = &out, &out
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := RunContext(ctx, cmd)
			if err == nil || !strings.Contains(err.Error(), "still ran after 1s") || !strings.Contains(out.String(), "goroutine 1") {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// TestMark: what a command leaves behind is killed unless it ends soon, and the command's own end
// is what counts.
func TestMark(t *testing.T) {
	for _, test := range []struct {
		name, script string
		killed       int
		fails        bool
	}{
		{"nothing", "exit 1", 0, true},
		{"ends soon", "sleep 1 & exit 0", 0, false},
		{"stays", "setsid sleep 1000 & exit 1", 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("bash", "-c", test.script)
			end := Mark(cmd)
			err := Run(cmd)
			if killed := end(); killed != test.killed || (err != nil) != test.fails {
				t.Errorf("%d killed, %v", killed, err)
			}
		})
	}
}

// TestEnds: a command that ends by itself gives what os/exec gives.
func TestEnds(t *testing.T) {
	out, err := CombinedOutput(exec.Command("sh", "-c", "echo one; echo two >&2; exit 3"))
	if string(out) != "one\ntwo\n" || err == nil || err.Error() != "exit status 3" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err = Output(exec.Command("sh", "-c", "echo one; echo two >&2")); string(out) != "one\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	_, err = Output(exec.Command("sh", "-c", "echo why >&2; exit 3"))
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || string(exit.Stderr) != "why\n" {
		t.Errorf("%v", err)
	}
	if err := Run(exec.Command("/nowhere/program")); err == nil {
		t.Error("a program that is not there ran")
	}
}
