package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gonbatch/internal/bounded"
	"gonbatch/internal/cluster"
	"gonbatch/internal/plugin"
	"gonbatch/internal/rundir"
)

// output runs a program, and returns what it prints to standard output. One that is still running
// when ctx is done is ended with all that it has started, and shows where it is.
func (b *bench) output(ctx context.Context, cmd *exec.Cmd) (string, error) {
	file, err := b.results.log(b.checking)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it is for people; the results have it
	log := &lenient{to: file}
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.MultiWriter(&said, log), log
	if err = bounded.RunContext(ctx, cmd); err != nil {
		err = &failure{err, file.Name(), log.err}
	} else if log.err != nil {
		b.results.say("warning: %s isn't complete: %v\n", file.Name(), log.err)
	}
	return strings.TrimSpace(said.String()), err
}

// lenient is a file that a program can write to even if the disk is full. A pipe writes to it, and
// no other goroutine.
type lenient struct {
	to  io.Writer
	err error // Why it isn't complete.
}

func (l *lenient) Write(p []byte) (int, error) {
	if l.err == nil {
		_, l.err = l.to.Write(p)
	}
	return len(p), nil
}

// combined returns what a program prints.
func combined(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := bounded.RunContext(ctx, cmd)
	return strings.TrimSpace(out.String()), err
}

// failure is that of a program, whose whole output is in a file.
type failure struct {
	err    error
	log    string
	logErr error // Why the file isn't complete.
}

func (f *failure) Unwrap() error { return f.err }

// Error begins with the line that says most.
func (f *failure) Error() string {
	text, err := os.ReadFile(f.log)
	where := f.log
	if err = errors.Join(f.logErr, err); err != nil {
		where += fmt.Sprintf(", which isn't complete: %v", err)
	}
	said := why(string(text))
	gist := lastLines(said, 1)
	if at := crash.FindStringIndex(said); at != nil {
		gist, _, _ = strings.Cut(said[at[0]:], "\n")
	}
	return fmt.Sprintf("%s (%v); from %s:\n%s", gist, f.err, where, said)
}

// crash matches the line with which a Go program begins to say why it ends, and where it was.
var crash = regexp.MustCompile(`(?m)^(SIG[A-Z]+: |panic: |fatal error: )`)

// shown lines of the output of a program that failed are in the results; all of it is in a file.
const shown = 30

// why returns the lines of an output that say most about a failure: the last ones, or the first
// ones of a crash.
func why(output string) string {
	at := crash.FindStringIndex(output)
	if at == nil {
		return lastLines(output, shown)
	}
	lines := strings.Split(strings.TrimSpace(output[at[0]:]), "\n")
	return strings.TrimSpace(lastLines(output[:at[0]], 5) + "\n" + strings.Join(lines[:min(shown, len(lines))], "\n"))
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// start runs a program as this many ranks, each on a GPU of its own, and returns what rank 0
// prints.
func (b *bench) start(ctx context.Context, size int, program string, args ...string) (string, error) {
	return b.startWith(ctx, nil, size, program, args...)
}

// startWith is start with further variables.
func (b *bench) startWith(ctx context.Context, env []string, size int, program string, args ...string) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	outs, errs := make([]string, size), make([]error, size)
	var group sync.WaitGroup
	for rank := range size {
		cmd := exec.Command(program, args...)
		cmd.Env = append(b.environ(rank, size, port), env...)
		group.Go(func() {
			if outs[rank], errs[rank] = b.output(ctx, cmd); errs[rank] != nil {
				errs[rank] = fmt.Errorf("rank %d of %d: %w", rank, size, errs[rank])
			}
		})
	}
	group.Wait()
	return outs[0], errors.Join(errs...)
}

// inherited is the environment without what a job around the check, or the user's shell, says of
// ranks and trainings of its own.
func inherited() []string {
	return slices.DeleteFunc(cluster.Outside(os.Environ()), func(variable string) bool {
		return strings.HasPrefix(variable, "GONBATCH_") || strings.HasPrefix(variable, "TRAINER_")
	})
}

// environ is that of a rank.
func (b *bench) environ(rank, size, port int) []string {
	return slices.Concat(inherited(), b.plugin.environ(), cluster.TorchrunVariables(rank, size, port, "gpu-check"), []string{
		rundir.EnvPlatform + "=" + plugin.CUDA, rundir.EnvDevices + "=1", rundir.EnvCompileCache + "=" + b.programs(), rundir.EnvData + "=" + b.kit("data"),
	})
}

// programs is the folder of compiled programs.
func (b *bench) programs() string { return filepath.Join(b.temporary, "programs") }

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
