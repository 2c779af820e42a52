// Package quota reads how many CPUs the control groups of this process let it use. A container or a
// job may see all CPUs of its machine and still be stopped most of the time, because its group may
// use only so many seconds of CPU time a second.
//
//	q, err := quota.Read() // {CPUs: 2, Group: 5012}: two threads can run all the time
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
	// CPUs is the CPU time, in seconds a second, rounded down to a whole number, but at least 1: so
	// many threads can run all the time. Without a quota, it is 0.
	CPUs int
	// Group identifies the control group that has this quota, on its machine: all of its processes
	// share it.
	Group uint64
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
	if q.CPUs > 0 {
		n = min(n, q.CPUs)
	}
	return n, err
}

// least returns the least quota of the groups, which are at the mounts.
func least(groups []procfs.Cgroup, mounts []*procfs.MountInfo) (found Quota, err error) {
	for _, group := range groups {
		for _, mount := range mounts {
			read := version(group, mount)
			if read == nil {
				continue
			}
			for _, dir := range folders(group.Path, mount) {
				cpus, err := read(dir)
				if err != nil {
					return Quota{}, fmt.Errorf("quota: %w", err)
				}
				// Of equal quotas, that of the outer group counts: more processes share it.
				if cpus > 0 && (found.CPUs == 0 || cpus <= found.CPUs) {
					found = Quota{cpus, inode(dir)}
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

// version returns how to read the quota of a group at a mount, or nil if that doesn't show it.
func version(group procfs.Cgroup, mount *procfs.MountInfo) (read func(dir string) (int, error)) {
	_, cpu := mount.SuperOptions["cpu"]
	switch {
	case group.HierarchyID == 0 && mount.FSType == "cgroup2":
		return version2
	case slices.Contains(group.Controllers, "cpu") && mount.FSType == "cgroup" && cpu:
		return version1
	}
	return nil
}

// folders lists the folder of a group at a mount, and those of the groups that contain it, as far
// as the mount shows them.
func folders(group string, mount *procfs.MountInfo) (dirs []string) {
	point := unescape.Replace(mount.MountPoint)
	rest, ok := strings.CutPrefix(group, strings.TrimSuffix(unescape.Replace(mount.Root), "/"))
	if !ok || rest != "" && rest[0] != '/' || strings.Contains(group+"/", "/../") {
		return nil
	}
	for rest = path.Join("/", rest); rest != "/"; rest = path.Dir(rest) {
		dirs = append(dirs, path.Join(point, rest))
	}
	return append(dirs, point)
}

// unescape decodes the paths of /proc/self/mountinfo: see proc_pid_mountinfo(5). systemd has
// backslashes in names, as in machine-a\x2db.scope.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// version2 reads cpu.max: the microseconds of CPU time in a period, or max, and the period.
func version2(dir string) (int, error) {
	text, err := readFile(path.Join(dir, "cpu.max"))
	fields := strings.Fields(text)
	if err != nil || len(fields) != 2 || fields[0] == "max" {
		return 0, err
	}
	return divide(dir, fields[0], fields[1])
}

// version1 reads the same from two files. -1 stands for no quota.
func version1(dir string) (int, error) {
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

func divide(dir, time, period string) (int, error) {
	t, err := strconv.Atoi(time)
	p, err2 := strconv.Atoi(period)
	if err != nil || err2 != nil || t <= 0 || p <= 0 {
		return 0, fmt.Errorf("%s: %q microseconds in %q are not a quota", dir, time, period)
	}
	return max(t/p, 1), nil
}

// readFile returns the text of a file; "" if it doesn't exist, as in the group at the root.
func readFile(name string) (string, error) {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return "", nil
	}
	return strings.TrimSpace(string(text)), err
}
