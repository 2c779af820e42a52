package rundir

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestProcessGone(t *testing.T) {
	here, err := ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child, err := findProcess("/proc", cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if child.Gone() {
		t.Error("a process that runs is gone")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed.
	for _, tc := range []struct {
		name string
		p    Process
		want bool
	}{
		{"itself", here, false},
		{"killed", child, true},
		{"its number is another's now", Process{Host: here.Host, Boot: here.Boot, PID: here.PID, Start: "1"}, true},
		{"before the machine restarted", Process{Host: here.Host, Boot: "another", PID: here.PID, Start: here.Start}, true},
		{"on another machine", Process{Host: "another.machine", Boot: "another", PID: child.PID, Start: child.Start}, false},
		{"in another container", Process{here.Host, here.Boot, child.PID, child.Start, "pid:[1]"}, false},
		{"not known", Process{}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.p.Gone(); got != tc.want {
				t.Errorf("%+v: gone %t, want %t", tc.p, got, tc.want)
			}
		})
	}
	if here.goneFrom(t.TempDir()) {
		t.Error("without /proc nothing is known, but the process is called gone")
	}
	if here.PID != os.Getpid() {
		t.Errorf("PID = %d, want %d", here.PID, os.Getpid())
	}
}

func TestStartTime(t *testing.T) {
	fields := " S 2" + strings.Repeat(" 3", 17) + " 4711" + strings.Repeat(" 5", 30)
	for _, tc := range []struct{ name, stat, want string }{
		{"usual", "1 (sh)" + fields, "4711"},
		{"hostile program name", "1 (a) b (c)" + fields, "4711"},
		{"cut off", "1 (sh) S 2", ""},
		{"ended, and its parent took no note", "1 (sh) Z" + fields[2:], ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			proc := t.TempDir()
			if err := os.Mkdir(filepath.Join(proc, "1"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(proc, "1", "stat"), []byte(tc.stat), 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := startTime(proc, 1)
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("startTime = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}

func TestKill(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	child, err := findProcess("/proc", cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]Process{
		"another of the same number": {child.Host, child.Boot, child.PID, "1", child.Namespace},
		"in another container":       {child.Host, child.Boot, child.PID, child.Start, "pid:[1]"},
		"on another machine":         {"another.machine", child.Boot, child.PID, child.Start, child.Namespace},
		"not known":                  {PID: child.PID},
	} {
		other.Kill()
		if child.Gone() {
			t.Fatalf("%s: the process was killed", name)
		}
	}
	child.Kill()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it ended with %v, want that it was killed", err)
	}
}
