// Package quota reads how many CPUs the control groups of this process let it use. A container or a
// job may see all CPUs of its machine and still be stopped most of the time, because its group may
// use only so many seconds of CPU time a second.
//
//	q, err := quota.Read() // {CPUs: 2.5, ID: 5012}
//	if n := q.Whole(); n > 0 { … } // 2: so many threads can run all the time
//
// See https://docs.kernel.org/admin-guide/cgroup-v2.html (cpu.max) and
// https://docs.kernel.org/scheduler/sched-bwc.html (version 1).
package quota

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Quota is the CPU time that a control group may use.
type Quota struct {
	// CPUs is the CPU time, in seconds a second. Without a quota, it is 0.
	CPUs float64
	// ID identifies the control group that has this quota, on its machine: all of its processes
	// share it.
	ID uint64
}

// Whole returns the number of threads that the quota lets run all the time: CPUs rounded down, but
// at least 1. Without a quota, it returns 0.
func (q Quota) Whole() int {
	if q.CPUs == 0 {
		return 0
	}
	return max(int(q.CPUs), 1)
}

// Read returns the least quota of this process's groups and of the groups that contain them.
// Without control groups, there is none.
func Read() (Quota, error) {
	p, err := procfs.Self()
	if err != nil {
		return Quota{}, fmt.Errorf("quota: %w", err)
	}
	groups, err := p.Cgroups()
	if errors.Is(err, fs.ErrNotExist) { // The kernel has none.
		return Quota{}, nil
	}
	if err != nil {
		return Quota{}, fmt.Errorf("quota: %w", err)
	}
	mounts, err := p.MountInfo()
	if err != nil {
		return Quota{}, fmt.Errorf("quota: %w", err)
	}
	return least(groups, mounts)
}

// NumCPU returns how many CPUs this process may use at the same time: those on which it may run, or
// as many as its quota allows.
func NumCPU() (int, error) {
	n := runtime.NumCPU()
	q, err := Read()
	if whole := q.Whole(); whole > 0 {
		n = min(n, whole)
	}
	return n, err
}

// least returns the least quota of the groups, which are at the mounts.
func least(groups []procfs.Cgroup, mounts []*procfs.MountInfo) (found Quota, err error) {
	for _, group := range groups {
		version, ofGroup := versionOf(group)
		if version == nil {
			continue
		}
		for _, mount := range mounts {
			if !ofGroup(mount) {
				continue
			}
			inside, ok := within(group.Path, mount.Root)
			for ; ok; inside = path.Dir(inside) {
				dir := path.Join(mount.MountPoint, inside)
				q, err := version(dir)
				if err != nil {
					return Quota{}, fmt.Errorf("quota: %w", err)
				}
				if q > 0 && (found.CPUs == 0 || q < found.CPUs) {
					found = Quota{q, inode(dir)}
				}
				if inside == "/" {
					break
				}
			}
		}
	}
	return found, nil
}

// inode returns the number of a folder, which is the same in all containers.
func inode(dir string) uint64 {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return 0 // Its file could be read, so this can't happen.
	}
	return stat.Ino
}

// versionOf returns how to read the quota of a group, and which mounts show it. A group without
// quotas has neither.
func versionOf(group procfs.Cgroup) (read func(dir string) (float64, error), shown func(*procfs.MountInfo) bool) {
	switch {
	case group.HierarchyID == 0:
		return version2, func(m *procfs.MountInfo) bool { return m.FSType == "cgroup2" }
	case slices.Contains(group.Controllers, "cpu"):
		return version1, func(m *procfs.MountInfo) bool {
			_, cpu := m.SuperOptions["cpu"]
			return m.FSType == "cgroup" && cpu
		}
	}
	return nil, nil
}

// within returns the path of a group inside a mount, which begins at root. A group that the mount
// doesn't show is not ok.
func within(group, root string) (inside string, ok bool) {
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(root, "/"))
	if !ok || rest != "" && rest[0] != '/' || strings.Contains(group+"/", "/../") {
		return "", false
	}
	return path.Join("/", rest), true
}

// version2 reads cpu.max: the microseconds of CPU time in a period, or max, and the period.
func version2(dir string) (float64, error) {
	text, err := readFile(path.Join(dir, "cpu.max"))
	fields := strings.Fields(text)
	if err != nil || len(fields) != 2 || fields[0] == "max" {
		return 0, err
	}
	return divide(dir, fields[0], fields[1])
}

// version1 reads the same from two files. -1 stands for no quota.
func version1(dir string) (float64, error) {
	time, err := readFile(path.Join(dir, "cpu.cfs_quota_us"))
	if err != nil || time == "" || strings.HasPrefix(time, "-") {
		return 0, err
	}
	period, err := readFile(path.Join(dir, "cpu.cfs_period_us"))
	if err != nil {
		return 0, err
	}
	return divide(dir, time, period)
}

func divide(dir, time, period string) (float64, error) {
	t, err := strconv.ParseFloat(time, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err := errors.Join(err, err2); err != nil || !(t > 0) || !(p > 0) {
		return 0, fmt.Errorf("%s: a quota of %q in %q microseconds: %w", dir, time, period, errors.Join(errNoQuota, err))
	}
	return t / p, nil
}

var errNoQuota = errors.New("not a quota")

// readFile returns the text of a file; "" if it doesn't exist, as in the group at the root.
func readFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}
