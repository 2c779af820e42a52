package submit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

// script is a scheduler that plays one scene at each query: it may write a log, then answers.
type script struct {
	t     *testing.T
	steps []scene
	asked int
}

type scene struct {
	log    string
	rank   int
	status Status
	err    error
}

func (s *script) Status(_ context.Context, job Job) (Status, error) {
	step := s.steps[min(s.asked, len(s.steps)-1)]
	s.asked++
	if step.log != "" {
		f, err := os.OpenFile(job.Dir.RankLog(step.rank), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			s.t.Fatal(err)
		}
		_, err = f.WriteString(step.log)
		if err := errors.Join(err, f.Close()); err != nil {
			s.t.Fatal(err)
		}
	}
	return step.status, step.err
}

func TestFollow(t *testing.T) {
	down := errors.New("scontrol did not answer in time")
	const (
		away = "job 7: scontrol did not answer in time; the job may still be running: showing its log, and asking again until the scheduler answers\n"
		back = "job 7: the scheduler answers again\n"
	)
	for _, tc := range []struct {
		name                string
		steps               []scene
		out, progress, fail string
		failure             rundir.Failure
	}{
		{
			name: "succeeds",
			steps: []scene{
				{status: Status{State: Pending, Reason: "Resources", Explanation: "waits"}},
				{log: "epoch 1\n", status: Status{State: Running, Nodes: "n1"}}, {status: Status{State: Running, Nodes: "n1"}},
				{log: "epoch 2\n", status: Status{State: Completed}},
			},
			out: "epoch 1\nepoch 2\n", progress: "job 7: pending: Resources (waits)\njob 7: running on n1\njob 7: completed\n",
		},
		{
			name: "requeued after a node failed",
			steps: []scene{
				{log: "first\n", status: Status{State: Running}}, {status: Status{State: NodeFailed}},
				{status: Status{State: Pending, Restarts: 1}}, {log: "second\n", status: Status{State: Running, Restarts: 1}},
				{status: Status{State: Completed, Restarts: 1}},
			},
			out:      "first\nsecond\n",
			progress: "job 7: running\njob 7: node failed\njob 7: pending, restarted 1 time\njob 7: running, restarted 1 time\njob 7: completed, restarted 1 time\n",
		},
		{
			name:  "a failed node has exit code 0",
			steps: []scene{{status: Status{State: NodeFailed}}},
			fail:  "job 7 (RUN): node failed", progress: "job 7: node failed\n",
		},
		{
			name: "another rank's panic names the cell",
			steps: []scene{{rank: 1, log: "working\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\tx.ipynb[cell 3]:5 +0x1\n",
				status: Status{State: Failed, ExitCode: 2, FailedRank: 1}}},
			progress: "job 7: failed\n",
			fail: "job 7 (RUN): failed, exit code 2\nrank 1: panic: boom (at x.ipynb[cell 3]:5)\nlast lines of LOGS/rank-1.log:\n" +
				"  working\n  panic: boom\n  \n  goroutine 1 [running]:\n  main.main()\n  \tx.ipynb[cell 3]:5 +0x1",
		},
		{
			name:     "stopped and saved",
			steps:    []scene{{log: "saved\n", status: Status{State: Stopped, ExitCode: 75}}},
			out:      "saved\n",
			progress: "job 7: stopped\n",
			fail:     "job 7 (RUN): stopped; its work is saved; resume it with: submit resume DIR",
		},
		{
			name:     "a failure that the ranks recorded",
			steps:    []scene{{log: "panic: not this\n", status: Status{State: Failed, ExitCode: 1}}},
			failure:  rundir.Failure{Kind: rundir.Stuck, Rank: 1, Host: "n2", Step: 40, Error: "it did not enter the all-reduce", LogTail: []string{"step 40"}, Ranks: []string{"rank 0: waits"}},
			out:      "panic: not this\n",
			progress: "job 7: failed\n",
			fail: "job 7 (RUN): failed, exit code 1\nrank 1 on n2 (stuck) after step 40: it did not enter the all-reduce\n  rank 0: waits\n" +
				"last lines of LOGS/rank-1.log:\n  step 40",
		},
		{
			name: "a scheduler that is away for a while, and a log that goes on",
			steps: []scene{{status: Status{State: Running}}, {err: down}, {log: "epoch 1\n", err: down}, {err: down}, {err: down}, {log: "epoch 2\n", err: down}, {err: down},
				{err: down}, {status: Status{State: Running}}, {err: down}, {status: Status{State: Completed}}},
			out:      "epoch 1\nepoch 2\n",
			progress: "job 7: running\n" + away + back + away + back + "job 7: completed\n",
		},
		{
			name:  "a scheduler that will never answer",
			steps: []scene{{err: Unanswerable{errors.New("it is on another cluster")}}},
			fail:  "follow job 7: it is on another cluster (the job may still be running; its run directory is DIR)",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, err := rundir.Create(t.TempDir(), "x", time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if tc.failure.Error != "" {
				if _, err := tc.failure.Write(dir); err != nil {
					t.Fatal(err)
				}
			}
			var out, progress bytes.Buffer
			_, err = Follow(t.Context(), &script{t: t, steps: tc.steps}, Job{ID: "7", Dir: dir},
				FollowOptions{Out: &out, Progress: &progress, LogInterval: time.Millisecond, StatusInterval: time.Millisecond})
			got := ""
			if err != nil {
				got = strings.NewReplacer(dir.Logs(), "LOGS", dir.Path(), "DIR", dir.Name(), "RUN").Replace(err.Error())
			}
			if out.String() != tc.out || progress.String() != tc.progress || got != tc.fail {
				t.Errorf("out %q, want %q\nprogress %q\nwant     %q\nerror %s\nwant  %s", &out, tc.out, &progress, tc.progress, got, tc.fail)
			}
		})
	}
}

// stuck is a scheduler that never answers.
type stuck struct{ asked chan struct{} }

func (s stuck) Status(ctx context.Context, _ Job) (Status, error) {
	close(s.asked)
	<-ctx.Done()
	return Status{}, ctx.Err()
}

// lines is a writer that sends its text to a channel.
type lines chan string

func (l lines) Write(text []byte) (int, error) {
	l <- string(text)
	return len(text), nil
}

// TestFollowShowsTheLogMeanwhile: a query that takes forever delays nothing, and ends with Follow.
func TestFollowShowsTheLogMeanwhile(t *testing.T) {
	dir, err := rundir.Create(t.TempDir(), "x", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	out, asked, ended := make(lines), make(chan struct{}), make(chan error)
	go func() {
		_, err := Follow(ctx, stuck{asked}, Job{ID: "7", Dir: dir}, FollowOptions{Out: out, Progress: io.Discard, LogInterval: time.Millisecond})
		ended <- err
	}()
	<-asked
	if err := os.WriteFile(dir.RankLog(0), []byte("epoch 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := <-out; got != "epoch 1\n" {
		t.Errorf("shows %q", got)
	}
	cancel(Interrupt{Signal: 2})
	var interrupt Interrupt
	if err := <-ended; !errors.As(err, &interrupt) {
		t.Errorf("error %v", err)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(Interrupt{Signal: 2})
	var out bytes.Buffer
	_, err := Follow(ctx, &script{t: t, steps: []scene{{status: Status{State: Running}}}}, Job{ID: "7", Dir: rundir.At(t.TempDir())}, FollowOptions{Out: &out, Progress: &out})
	var interrupt Interrupt
	if !errors.As(err, &interrupt) || interrupt.ExitCode() != 130 {
		t.Errorf("error %v", err)
	}
}

func TestTail(t *testing.T) {
	path := t.TempDir() + "/log"
	tail := NewTail(path)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for i, tc := range []struct{ content, want string }{{"", ""}, {"one\n", "one\n"}, {"one\n", ""}, {"one\ntwo\n", "two\n"}, {"new\n", "new\n"}} {
		if i > 0 {
			write(tc.content)
		}
		var out bytes.Buffer
		if _, err := tail.Copy(&out); err != nil || out.String() != tc.want {
			t.Errorf("step %d: Copy gave %q, %v; want %q", i, &out, err, tc.want)
		}
	}
}

func TestLastLines(t *testing.T) {
	path := t.TempDir() + "/log"
	var text strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&text, "line %d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := lastLines(path, 0, 2); err != nil || strings.Join(got, "|") != "line 19998|line 19999" {
		t.Errorf("LastLines = %q, %v", got, err)
	}
	if all, err := lastLines(path, 0, 1<<20); err != nil || len(all) > 10000 || !strings.HasPrefix(all[0], "line ") {
		t.Errorf("LastLines of all = %d lines, first %q, %v", len(all), all[0], err)
	}
}

func TestExecRunner(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		args       []string
		timeout    time.Duration
	}{
		{name: "missing", args: []string{"gonbatch-no-such-command"}, want: "gonbatch-no-such-command is not on PATH"},
		{name: "its own words", args: []string{"sh", "-c", "echo no such partition >&2; exit 3"}, want: "sh: no such partition"},
		{name: "too slow", args: []string{"sleep", "20"}, timeout: 20 * time.Millisecond, want: "sleep did not answer in time"},
		{name: "silent", args: []string{"false"}, want: "false: exit status 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ExecRunner{Timeout: tc.timeout}.Run(t.Context(), tc.args[0], tc.args[1:]...)
			if err == nil || err.Error() != tc.want {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
	if out, err := (ExecRunner{}).Run(t.Context(), "printf", "%s", "$(x) y"); err != nil || string(out) != "$(x) y" {
		t.Errorf("Run = %q, %v", out, err)
	}
}
