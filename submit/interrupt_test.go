package submit

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestBlameInterrupt: a command that a signal has ended says so, and exits with the signal's code,
// whatever noticed the signal first.
func TestBlameInterrupt(t *testing.T) {
	ended := func(signal string) error {
		return fmt.Errorf("go env: %w", exec.Command("sh", "-c", "kill -"+signal+" $$").Run())
	}
	failed := &JobError{Status: Status{State: Stopped, ExitCode: 75}}
	tests := []struct {
		name string
		err  error
		// live is set if no signal comes; late, if it comes after the error.
		live, late bool
		code       int
	}{
		{name: "no error", code: 0},
		{name: "canceled", err: fmt.Errorf("go env: %w", context.Canceled), code: 130},
		{name: "a child that got the signal too", err: ended("INT"), code: 130},
		{name: "and before", err: ended("INT"), late: true, code: 130},
		{name: "a child that was killed then", err: ended("KILL"), code: 130},
		{name: "a child that the system killed", err: ended("KILL"), live: true, code: 1},
		{name: "a child that somebody ended", err: ended("TERM"), live: true, code: 1},
		{name: "known", err: fmt.Errorf("%w; the job is queued", Interrupt{Signal: syscall.SIGTERM}), code: 143},
		{name: "a job that has saved", err: failed, code: 75},
		{name: "a mistake", err: errors.New("no"), code: 1},
		{name: "a mistake of the user", err: Usagef("no"), code: 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			interrupt := func() { cancel(Interrupt{Signal: syscall.SIGINT}) }
			switch {
			case tt.late:
				time.AfterFunc(10*time.Millisecond, interrupt)
			case !tt.live:
				interrupt()
			}
			if err := BlameInterrupt(ctx, tt.err); ExitCode(err) != tt.code || (err == nil) != (tt.err == nil) {
				t.Errorf("exit code %d, want %d: %v", ExitCode(err), tt.code, err)
			}
		})
	}
}
