package estimate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/forecast"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/estimate"
)

// program is one that answers: it takes 1 GB for each example of a GPU, or does what the test says.
func program(t *testing.T, body string) estimate.Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train")
	if err := os.WriteFile(path, []byte("#!/bin/bash\nset -e\nread_batch() { sed -n 's/.*\"batch\": \\([0-9]*\\).*/\\1/p' \"$"+rundir.EnvForecast+"\"; }\n"+body), 0o700); err != nil {
		t.Fatal(err)
	}
	return estimate.Program{Path: path, Cell: rundir.Cell{Name: "train"}, Dir: t.TempDir()}
}

const answers = `batch=$(read_batch)
batch=${batch:-1000}
echo "asked for $batch"
cat > "$` + rundir.EnvForecast + `" << END
{"world": {}, "answer": {"batch": $batch, "memory": {"total": $((batch / 4 * 1000000000))}}}
END
`

// TestAskTime: a program that comes to no training step is ended when its time is up.
func TestAskTime(t *testing.T) {
	p := program(t, "exec sleep 60")
	p.Limits = estimate.Limits{Time: time.Second}
	if _, _, _, err := ask(p, "h100"); err == nil || !strings.Contains(err.Error(), "cell train has not reached a training step of package trainer or World.Optimizer in 1s") {
		t.Errorf("got %v", err)
	}
}

func ask(p estimate.Program, target string) (string, int, bool, error) {
	var said bytes.Buffer
	shell := submit.Shell{Err: &said, Environ: os.Environ()}
	r, err := estimate.Ask(context.Background(), shell, p, forecast.World{Target: target, Nodes: 1, GPUsPerNode: 4})
	if err == nil {
		err = r.Refused()
	}
	return said.String(), r.Largest, r.Fits, err
}

// TestAsk: a step that does not fit is refused, with the largest batch that does.
func TestAsk(t *testing.T) {
	gpu, err := forecast.Find("h100")
	if err != nil {
		t.Fatal(err)
	}
	want := int(gpu.Usable()/1e9) * 4
	said, largest, fits, err := ask(program(t, answers), "h100")
	if fits || largest != want || err == nil || !strings.Contains(err.Error(), fmt.Sprintf("the largest batch that fits is %d", want)) {
		t.Errorf("fits %v, the largest batch %d, want %d: %v\n%s", fits, largest, want, err, said)
	}
	if _, _, fits, err := ask(program(t, "batch=40\n"+strings.ReplaceAll(answers, "batch=$(read_batch)\n", "")), "h100"); !fits || err != nil {
		t.Errorf("a small batch: fits %v, %v", fits, err)
	}
}

func TestAskFails(t *testing.T) {
	for name, tt := range map[string]struct{ body, target, want string }{
		"no training step": {"exit 0", "h100", "ended without a training step"},
		"a failure":        {"exit 3", "h100", "failed before its first training step: exit status 3"},
		"XLA's error":      {`echo '{"answer": {"error": "no such chip"}}' > "$` + rundir.EnvForecast + `"`, "h100", "no such chip"},
		"another target":   {"exit 0", "h1000", "give one of"},
		"a deaf program":   {strings.ReplaceAll(answers, "batch=$(read_batch)\n", ""), "h100", "made one of 1000"},
	} {
		if _, _, _, err := ask(program(t, tt.body), tt.target); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

// TestAskInterrupted: Ctrl-C, which the program gets too, is not a failure of the program.
func TestAskInterrupted(t *testing.T) {
	for name, body := range map[string]string{"the program ends first": "kill -INT $$; exec sleep 60", "it ends by submit": "exec sleep 60"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			timer := time.AfterFunc(time.Second, func() { cancel(submit.Interrupt{Signal: syscall.SIGINT}) })
			defer timer.Stop()
			shell := submit.Shell{Err: io.Discard, Environ: os.Environ()}
			_, err := estimate.Ask(ctx, shell, program(t, body), forecast.World{Target: "h100", Nodes: 1, GPUsPerNode: 4})
			if interrupt := new(submit.Interrupt); !errors.As(err, interrupt) {
				t.Errorf("got %v, want an interrupt", err)
			}
		})
	}
}
