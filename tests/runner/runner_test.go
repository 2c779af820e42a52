package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/internal/proc"
)

// daemons start what outlived tests: processes with their own session, without a parent, without
// the environment, and deaf to signals. The last line says that they run.
const daemons = `
sleep 1000 & setsid sleep 1000 & (setsid nohup sleep 1000 >&- 2>&- <&- &)
setsid bash -c 'trap "" TERM INT HUP; while :; do sleep 1; done' &
env -i PATH="$PATH" setsid sleep 1000 &
if [ "$(id -u)" = 0 ]; then
  ip netns add "$NETWORK" && mkdir -p "$FOLDER" && mount -t tmpfs none "$FOLDER" && ip netns exec "$NETWORK" sleep 1000 &
fi
touch "$READY"
`

// user is what make test would be: a process that starts runner.
type user struct {
	t           *testing.T
	runner, dir string
	ready, mark string
	cmd         *exec.Cmd
	output      *os.File
}

// builtRunner builds runner where every user may run it.
func builtRunner(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "runner-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "runner")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts bash, which starts runner, which runs a script.
func start(t *testing.T, runner, script string, uid uint32) *user {
	t.Helper()
	dir, err := os.MkdirTemp(filepath.Dir(runner), "run-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	id := filepath.Base(filepath.Dir(runner)) + filepath.Base(dir)
	u := &user{t: t, runner: runner, dir: dir, ready: filepath.Join(dir, "ready"), mark: "TEST_OF_RUNNER=" + id}
	if u.output, err = os.Create(filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	// Without the colon, bash would become runner.
	u.cmd = exec.Command("bash", "-c", `"$0" $$ bash -c "$1"; code=$?; exit $code`, runner, script)
	u.cmd.Dir = dir
	u.cmd.Env = append(os.Environ(), eventsFile+"=", u.mark, "READY="+u.ready, "NETWORK="+u.network(), "FOLDER="+u.folder())
	u.cmd.Stdout, u.cmd.Stderr = u.output, u.output
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid != 0 {
		u.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	if err := u.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return u
}

func (u *user) network() string { return "net-" + u.mark[len(u.mark)-12:] }
func (u *user) folder() string  { return filepath.Join(u.dir, "mounted") }

// waitReady waits until the script has started all of its processes.
func (u *user) waitReady() {
	u.t.Helper()
	for range 3000 {
		if _, err := os.Stat(u.ready); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	u.t.Fatalf("the script didn't start:\n%s", u.said())
}

// said returns all output.
func (u *user) said() string {
	text, err := os.ReadFile(u.output.Name())
	if err != nil {
		u.t.Error(err)
	}
	return string(text)
}

// wantNothing checks that soon nothing is left of the run. found are its processes, which may have
// lost the mark.
func (u *user) wantNothing(found []int) {
	u.t.Helper()
	left := map[int]string{}
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		clear(left)
		for pid := range proc.With(u.mark) {
			left[pid] = proc.Name(pid)
		}
		for _, pid := range found {
			if words := proc.Words(pid); words != "" {
				left[pid] = proc.Name(pid)
			}
		}
		if len(left) == 0 {
			break
		}
	}
	if len(left) > 0 {
		u.t.Errorf("%v are left:\n%s", left, u.said())
		for pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	mounts, err := os.ReadFile(procfs.DefaultMountPoint + "/self/mounts")
	if err != nil {
		u.t.Error(err)
	}
	if strings.Contains(string(mounts), u.folder()) {
		u.t.Errorf("%s is still mounted", u.folder())
	}
	if _, err := os.Stat(filepath.Join("/run/netns", u.network())); err == nil {
		u.t.Errorf("network namespace %s is left", u.network())
	}
}

// users are those who run the tests: root, for whom there are namespaces, and another.
func users(t *testing.T) map[string]uint32 {
	if os.Geteuid() != 0 {
		return map[string]uint32{"a user": uint32(os.Getuid())}
	}
	if err := exec.Command("unshare", "--mount", "--pid", "--fork", "true").Run(); err != nil {
		machine.Lacks(t, fmt.Sprintf("no namespaces here: %v", err))
	}
	return map[string]uint32{"root": 0, "a user": 65534}
}

// TestKilled: whoever of those that run the tests is killed, nothing is left.
func TestKilled(t *testing.T) {
	runner := builtRunner(t)
	for who, uid := range users(t) {
		for what, kill := range map[string]func(u *user, outer, inner int) []int{
			"make":            func(u *user, _, _ int) []int { return []int{u.cmd.Process.Pid} },
			"outer":           func(_ *user, outer, _ int) []int { return []int{outer} },
			"inner":           func(_ *user, _, inner int) []int { return []int{inner} },
			"both":            func(_ *user, outer, inner int) []int { return []int{outer, inner} },
			"make's group":    func(u *user, _, _ int) []int { return []int{-u.cmd.Process.Pid} },
			"make and outer":  func(u *user, outer, _ int) []int { return []int{u.cmd.Process.Pid, outer} },
			"the test itself": func(_ *user, _, inner int) []int { return proc.Children(inner)[:1] },
		} {
			if what == "both" && uid != 0 {
				continue // Without namespaces, one of them must live to end the others.
			}
			t.Run(who+"/"+what, func(t *testing.T) {
				t.Parallel()
				u := start(t, runner, daemons+"sleep 1000", uid)
				u.waitReady()
				time.Sleep(rand.N(200 * time.Millisecond)) // Also while the last of them start.
				below := proc.Below(u.cmd.Process.Pid)
				if len(below) < 6 {
					t.Fatalf("only %d processes run:\n%s", len(below), u.said())
				}
				for _, pid := range kill(u, below[0], below[1]) {
					// The first one's end may have ended the second.
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
						t.Error(err)
					}
				}
				_ = u.cmd.Wait()
				u.wantNothing(below)
			})
		}
	}
}

// TestKilledEarly: nothing is left either if make is killed while runner begins.
func TestKilledEarly(t *testing.T) {
	runner := builtRunner(t)
	for who, uid := range users(t) {
		for i := range 10 {
			t.Run(fmt.Sprint(who, "/", i), func(t *testing.T) {
				t.Parallel()
				u := start(t, runner, daemons+"sleep 1000", uid)
				time.Sleep(rand.N(100 * time.Millisecond))
				below := proc.Below(u.cmd.Process.Pid)
				if err := u.cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
				_ = u.cmd.Wait()
				u.wantNothing(below)
			})
		}
	}
}

// TestEnd: the run ends with the code of its command, on its own or by a signal, and says what it
// had to end.
func TestEnd(t *testing.T) {
	runner := builtRunner(t)
	for who, uid := range users(t) {
		for _, test := range []struct {
			name, script string
			signal       syscall.Signal
			code         int
			says         string
		}{
			{"success", `touch "$READY"`, 0, 0, ""},
			{"a failure", `touch "$READY"; exit 3`, 0, 3, ""},
			{"a signal", `touch "$READY"; kill -9 $$`, 0, 137, ""},
			{"something left", daemons + "exit 4", 0, 4, "runner: ended what outlived the tests: bash, "},
			{"something that ends soon", `touch "$READY"; (setsid sleep 0.5 &); exit 5`, 0, 5, ""},
			{"Ctrl-C", `trap "echo a summary; exit 6" INT; touch "$READY"; while :; do sleep 0.1; done`, syscall.SIGINT, 6, "a summary"},
			{"Ctrl-C that a child hears", `bash -c 'trap "echo a summary; exit 6" INT; touch "$READY"; while :; do sleep 0.1; done'; exit $?`, syscall.SIGINT, 6, "a summary"},
			{"hangs up", `touch "$READY"; while :; do sleep 0.1; done`, syscall.SIGHUP, 129, ""},
			{"told to end", `trap "exit 7" TERM; touch "$READY"; while :; do sleep 0.1; done`, syscall.SIGTERM, 7, ""},
			{"deaf", `trap "" TERM; touch "$READY"; while :; do sleep 0.1; done`, syscall.SIGTERM, 137, ""},
		} {
			t.Run(who+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				u := start(t, runner, test.script, uid)
				u.waitReady()
				below := proc.Below(u.cmd.Process.Pid)
				if test.signal != 0 {
					if err := syscall.Kill(below[0], test.signal); err != nil {
						t.Error(err)
					}
				}
				_ = u.cmd.Wait()
				if code := u.cmd.ProcessState.ExitCode(); code != test.code {
					t.Errorf("exit code %d, want %d:\n%s", code, test.code, u.said())
				}
				if said := u.said(); !strings.Contains(said, test.says) || test.says == "" && test.signal == 0 && said != "" {
					t.Errorf("it says %q, want %q", said, test.says)
				}
				u.wantNothing(below)
			})
		}
	}
}

// TestNohup: the tests ignore no signal, even if the runner was told to.
func TestNohup(t *testing.T) {
	cmd := exec.Command("bash", "-c", `trap "" HUP INT; "$0" $$ bash -c 'kill -HUP $$; exit 3'; code=$?; exit $code`, builtRunner(t))
	cmd.Env = append(os.Environ(), eventsFile+"=")
	if out, _ := bounded.CombinedOutput(cmd); cmd.ProcessState.ExitCode() != 129 {
		t.Errorf("exit code %d, want 129:\n%s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestProgress: there is a line about the tests that run, and about those that have ended, whatever
// the events are.
func TestProgress(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &progress{begin: begin, running: make(map[string]time.Time)}
	if got, want := p.line(begin.Add(time.Minute)), "1m0s: 0 passed, 0 skipped, 0 failed, no test runs: packages are being compiled"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	at := func(second int, action, test string) {
		p.add(event{Time: begin.Add(time.Duration(second) * time.Second), Action: action, Package: "gonbatch/data", Test: test})
	}
	at(0, "start", "")
	at(0, "run", "TestA")
	at(1, "run", "TestA/sub")
	at(2, "pass", "TestA/sub")
	at(3, "run", "TestB")
	at(3, "pause", "TestB")
	at(4, "run", "TestC")
	at(5, "skip", "TestC")
	at(6, "run", "TestD")
	at(7, "fail", "TestD")
	at(8, "cont", "TestB")
	for i, name := range slices.Repeat([]string{"TestE"}, 3) {
		at(9+i, "run", fmt.Sprint(name, i))
	}
	want := "1m0s: 1 passed, 1 skipped, 1 failed, TestA (data) for 1m0s, TestB (data) for 52s, TestE0 (data) for 51s, and 2 more"
	if got := p.line(begin.Add(time.Minute)); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestProgressFollows: lines are written while gotestsum writes its file, and what is not an event
// stops nothing.
func TestProgressFollows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.json")
	lines := make(chan string, 8)
	go showProgress(writer(func(line string) { lines <- line }), path, 20*readEvery)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() //nolint:errcheck // what it has is checked
	for _, text := range []string{"# not an event\n", `{"Action":"pa`, "ss\",\"Test\":\"TestA\"}\n"} {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * readEvery)
	}
	select {
	case line := <-lines:
		if !strings.Contains(line, ": 1 passed, 0 skipped, 0 failed") {
			t.Error(line)
		}
	case <-time.After(time.Minute):
		t.Error("no line")
	}
}

// writer is an io.Writer that is a function.
type writer func(string)

func (w writer) Write(p []byte) (int, error) { w(string(bytes.TrimSpace(p))); return len(p), nil }
