// Package notify tells people and programs that a job has started or ended: it posts JSON to a URL,
// or runs a command. It knows nothing about schedulers.
//
//	stop := notify.Begin(shell, spec, job) // "started", or "restarted"
//	...
//	stop(code)                             // "completed", "stopped" or "failed"
package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Event is what a target gets.
type Event struct {
	// Event is "started", "restarted", "completed", "failed", or "stopped": then the job has saved,
	// and may start again.
	Event string    `json:"event"`
	Time  time.Time `json:"time"`
	// Name is the job's name, and Job its id in the scheduler; empty on this machine.
	Name      string `json:"name"`
	Job       string `json:"job,omitempty"`
	Run       string `json:"run"`
	Directory string `json:"directory"`
	Host      string `json:"host"`
	// ExitCode is the job's, at its end.
	ExitCode int `json:"exit_code,omitempty"`
	// Failure is what a rank has recorded, if the job failed.
	Failure string `json:"failure,omitempty"`
	// Metrics are the newest values, without NaN and infinities.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Text is a line for people.
	Text string `json:"text"`
}

// limit is how long a target may take. The end of a job that is out of time must not wait longer.
const limit = 10 * time.Second

// Begin notifies a job's targets that it has started. Call the returned function with the exit code
// when it has ended. Targets that fail are warnings.
func Begin(shell submit.Shell, spec submit.JobSpec, job string) (end func(code int)) {
	if len(spec.Notify) == 0 {
		return func(int) {}
	}
	starts, _ := rundir.CountStarts(spec.RunDir) // If that can't be read, this is the first.
	event := Event{Name: spec.Name, Job: job, Run: spec.RunDir.Name(), Directory: spec.RunDir.Path(), Host: hostname()}
	first := event
	first.Event = "started"
	if starts > 0 {
		first.Event = "restarted"
	}
	var started sync.WaitGroup
	started.Go(func() { send(shell, spec, first) })
	return func(code int) {
		started.Wait()
		event.ExitCode = code
		switch code {
		case 0:
			event.Event = "completed"
		case rundir.RequeueCode:
			event.Event = "stopped"
		default:
			event.Event = "failed"
			if f, err := rundir.ReadFailure(spec.RunDir); err == nil {
				event.Failure = submit.DescribeFailure(f)
			}
		}
		event.Metrics = metrics(spec.RunDir)
		send(shell, spec, event)
	}
}

// metrics returns the newest finite values of a run.
func metrics(dir rundir.Dir) map[string]float64 {
	all, err := rundir.ReadMetrics(dir)
	if err != nil {
		return nil
	}
	newest := map[string]float64{}
	for _, m := range all {
		maps.Copy(newest, m.Values)
	}
	maps.DeleteFunc(newest, func(_ string, value float64) bool { return math.IsNaN(value) || math.IsInf(value, 0) })
	return newest
}

// send sends an event to all targets at once.
func send(shell submit.Shell, spec submit.JobSpec, e Event) {
	e.Time = shell.Now()
	e.Text = strings.TrimSpace(fmt.Sprintf("%s (%s) %s", e.Name, strings.TrimSpace("job "+e.Job), e.Event))
	if e.Job == "" {
		e.Text = fmt.Sprintf("%s (run %s) %s", e.Name, e.Run, e.Event)
	}
	if e.Failure != "" {
		e.Text += ": " + e.Failure
	}
	text, err := json.Marshal(e)
	if err != nil {
		shell.Warn("--notify: %v", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var all sync.WaitGroup
	for i, target := range spec.Notify {
		all.Go(func() {
			deliver := run
			if submit.IsURL(target) {
				deliver = post
			}
			if err := deliver(ctx, shell, target, text, e); err != nil { // The URL of a webhook is a secret.
				shell.Warn("--notify, target %d: %s: %v", i+1, e.Event, err)
			}
		})
	}
	all.Wait()
}

// post posts an event to a URL.
func post(ctx context.Context, _ submit.Shell, url string, text []byte, _ Event) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("it is not a URL that can be posted to")
	}
	req.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the server at %s can't be reached from %s", req.URL.Host, hostname())
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20))
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("the server at %s answers %s", req.URL.Host, answer.Status)
	}
	return nil
}

// hostname returns this machine's name; "" if it has none: the rest is worth sending.
func hostname() string {
	name, _ := os.Hostname()
	return name
}

// inMemory returns a file in memory. A pipe to a command that doesn't read it would break, which
// submit takes for the end of its own reader.
func inMemory(text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("event", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), "event")
	if _, err = file.Write(text); err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	return file, err
}

// run runs a shell command, which gets the event as JSON on standard input and as variables.
func run(ctx context.Context, shell submit.Shell, command string, text []byte, e Event) error {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env = append(shell.Environ[:len(shell.Environ):len(shell.Environ)], rundir.EnvEvent+"="+e.Event, rundir.EnvEventText+"="+e.Text)
	input, err := inMemory(text)
	if err != nil {
		return err
	}
	defer input.Close() //nolint:errcheck // it is only in memory
	cmd.Stdin = input
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
