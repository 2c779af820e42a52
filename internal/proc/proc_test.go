package proc

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

// TestProcess: a process is found by its environment, its group and its parent, as long as it runs.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("sh", "-c", "sleep 60; exit 1")
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, append(os.Environ(), "TEST_PROC="+dir), &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sh := cmd.Process.Pid
	for len(Children(sh)) == 0 || Name(Children(sh)[0]) != "sleep" {
		time.Sleep(time.Millisecond)
	}
	sleep := Children(sh)[0]
	both := slices.Sorted(slices.Values([]int{sh, sleep}))
	for what, got := range map[string][]int{
		"with":  slices.Sorted(maps.Keys(maps.Collect(With("TEST_PROC=" + dir)))),
		"group": slices.Sorted(slices.Values(Group(sh))),
		"below": slices.DeleteFunc(slices.Sorted(slices.Values(Below(os.Getpid()))), func(pid int) bool { return !slices.Contains(both, pid) }),
	} {
		if !slices.Equal(got, both) {
			t.Errorf("%s: %d, want %d", what, got, both)
		}
	}
	if got := maps.Collect(With("TEST_PROC=" + dir + "x")); len(got) > 0 {
		t.Errorf("another variable: %v", got)
	}
	if line, want := Words(sleep), "sleep\x0060\x00"; line != want || Dir(sleep) != dir {
		t.Errorf("runs %q in %s, want %q in %s", line, Dir(sleep), want, dir)
	}
	if set, ok := SignalSet(sh, "SigCgt"); !ok || set.Has(syscall.SIGKILL) {
		t.Errorf("catches %b, %v", set, ok)
	}
	if err := syscall.Kill(-sh, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // It was killed.
	if found := slices.Collect(maps.Keys(maps.Collect(With("TEST_PROC=" + dir)))); Name(sh)+Words(sh)+Dir(sh) != "" || slices.Contains(found, sh) {
		t.Errorf("%d after the end: %q, %q, %q", found, Name(sh), Words(sh), Dir(sh))
	}
}
