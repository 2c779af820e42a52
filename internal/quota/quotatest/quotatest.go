// Package quotatest gives tests control groups with a quota. It is for tests only.
//
//	join := quotatest.Group(t, 1.5)
//	cmd := exec.Command(join[0], append(join[1:], "nproc")...)
package quotatest

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// period is the kernel's default, in microseconds.
const period = 100_000

// count tells the groups of this process apart.
var count atomic.Int64

// Group creates a control group that may use so many seconds of CPU time a second, and returns the
// command that starts another one in it. The test is skipped where no group can be created.
func Group(t *testing.T, cpus float64) (join []string) {
	t.Helper()
	root, files := "/sys/fs/cgroup", map[string]string{"cpu.max": fmt.Sprintf("%.0f %d", cpus*period, period)}
	if _, err := os.Stat(filepath.Join(root, "cgroup.controllers")); err != nil { // Version 1.
		root = filepath.Join(root, "cpu")
		files = map[string]string{"cpu.cfs_period_us": fmt.Sprint(period), "cpu.cfs_quota_us": fmt.Sprintf("%.0f", cpus*period)}
	}
	group := filepath.Join(root, fmt.Sprintf("gonbatch-test-%d-%d", os.Getpid(), count.Add(1)))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no control group can be created here: %v", err)
	}
	t.Cleanup(func() { remove(t, group) })
	for name, text := range files {
		if _, err := os.Stat(filepath.Join(group, name)); err != nil {
			t.Skipf("control groups have no quotas here: %v", err)
		}
		if err := os.WriteFile(filepath.Join(group, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"bash", "-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group}
}

// remove removes a group. For a moment, the kernel still counts a process that has ended.
func remove(t *testing.T, group string) {
	var err error
	for range 500 {
		if err = os.Remove(group); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error(err)
}
