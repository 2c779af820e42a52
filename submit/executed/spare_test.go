package executed

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/janpfeifer/gonb/gonbui"

	"gonbatch/internal/rundir"
)

// serveForTest runs a recorder in its own process until that is killed.
func serveForTest(dir rundir.Dir, socket string) {
	recorder, err := openRecorder(dir, time.Now)
	if err == nil {
		recorder.Start("7", "n1")
		_, err = listen(socket, recorder, func(err error) { fmt.Fprintln(os.Stderr, err) })
	}
	if err != nil {
		panic(err)
	}
	fmt.Println("listening")
	select {}
}

// waitAndShow is a program with rich output before and after its recorder is killed.
func waitAndShow(sync bool) {
	gonbui.DisplayHTML("<b>first</b>")
	if sync {
		gonbui.Sync()
	}
	fmt.Println("before")
	for release := os.Args[1]; ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(release); err == nil {
			break
		}
	}
	for i := range 2000 { // More than a pipe holds.
		fmt.Println("line", i, strings.Repeat("x", 100))
	}
	gonbui.DisplayHTML("<b>second</b>")
	gonbui.Sync()
	fmt.Println("after")
	os.Exit(7)
}

// TestKilledRecorder: a program whose recorder is killed runs to its end, and its log has
// everything, including the recorder's death.
func TestKilledRecorder(t *testing.T) {
	for _, synced := range []string{"", "yes"} {
		t.Run("answered before: "+synced, func(t *testing.T) {
			t.Setenv("EXECUTED_SYNCED", synced)
			j := newJob(t)
			recorder := j.otherRecorder(t)
			release := filepath.Join(t.TempDir(), "release")
			t.Setenv("EXECUTED_PROGRAM", "wait")
			ended := make(chan int, 1)
			go func() { ended <- j.run("b", os.Args[0], release) }()
			waitFor(t, "the program runs", func() bool { return strings.Contains(j.log(), "before\n") })
			waitFor(t, "the notebook knows that it runs", func() bool { return j.results()["b"].Status == running })
			if err := recorder.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = recorder.Wait() // It was killed.
			if err := os.WriteFile(release, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			select {
			case code := <-ended:
				if code != 7 {
					t.Errorf("the program ended with code %d", code)
				}
			case <-time.After(5 * time.Minute):
				t.Fatal("the program hangs")
			}
			waitFor(t, "the log has all", func() bool { return strings.HasSuffix(j.log(), "after\n") })
			if log := j.log(); !strings.Contains(log, "\nline 1999 x") || strings.Count(log, "the recorder has died") != 1 {
				t.Errorf("log %.300q", log)
			}
			if err := Settle(j.dir, time.Now, Outcome{Code: 7}); err != nil {
				t.Fatal(err)
			}
			if got := j.results()["b"]; !strings.Contains(got.Outputs, "further output is only in logs/rank-0.log") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestDyingRecorder: what a program prints at its end is in the log although its recorder, which
// has been killed, ends after it.
func TestDyingRecorder(t *testing.T) {
	j := newJob(t)
	recorder := j.otherRecorder(t)
	release := filepath.Join(t.TempDir(), "release")
	ended := make(chan int, 1)
	go func() {
		ended <- j.run("b", "sh", "-c", "echo before; until test -e "+release+"; do sleep 0.01; done; echo after; exit 7")
	}()
	waitFor(t, "the program runs", func() bool { return strings.Contains(j.log(), "before\n") })
	for i, s := range []os.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		if err := recorder.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := os.WriteFile(release, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Millisecond) // The program has ended, unless the machine is busy.
		}
	}
	_ = recorder.Wait() // It was killed.
	if code := <-ended; code != 7 {
		t.Errorf("the program ended with code %d", code)
	}
	if !strings.HasSuffix(j.log(), "after\n") {
		t.Errorf("log %q", j.log())
	}
}

// otherRecorder replaces the job's recorder by one in a process of its own.
func (j *job) otherRecorder(t *testing.T) *exec.Cmd {
	t.Helper()
	if err := j.server.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GONBATCH_RUN_DIR", j.dir.Path())
	recorder := exec.Command(os.Args[0])
	recorder.Env = append(os.Environ(), "EXECUTED_TEST=serve", rundir.EnvRecorder+"="+j.socket)
	recorder.Stderr = os.Stderr
	out, err := recorder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := recorder.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "listening\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return recorder
}

func (j *job) log() string {
	text, _ := os.ReadFile(j.dir.RankLog(0))
	return string(text)
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute: not yet so that %s", what)
		}
	}
}
