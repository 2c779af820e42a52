// Package affinity binds a process to CPUs, so that the ranks on one node do not compete for the
// same CPUs.
//
//	allowed, err := affinity.Allowed()             // [0 1 2 3]
//	mine := affinity.Divide(allowed, localRank, 2) // [2 3] for local rank 1
//	err = affinity.Pin(mine)
//
// It works on Linux only, as clusters do. It leaves memory placement (NUMA) alone: pages come from
// the node of the CPU that first touches them.
package affinity

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// Allowed lists the CPUs that this process may run on, in order.
func Allowed() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("affinity: read the allowed CPUs: %w", err)
	}
	var cpus []int
	for cpu := range len(set) * 64 {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// Pin binds all threads of this process, and the threads that they will start, to the CPUs.
func Pin(cpus []int) error {
	if len(cpus) == 0 {
		return fmt.Errorf("affinity: no CPUs to pin to")
	}
	var set unix.CPUSet
	for _, cpu := range cpus {
		set.Set(cpu)
	}
	// A thread may start while the list is read, and its parent may not be bound yet. Repeat until
	// there are no new threads.
	bound := map[int]bool{}
	for {
		threads, err := threads()
		if err != nil {
			return err
		}
		before := len(bound)
		for _, tid := range threads {
			if bound[tid] {
				continue
			}
			bound[tid] = true
			if err := unix.SchedSetaffinity(tid, &set); err != nil && err != unix.ESRCH {
				return fmt.Errorf("affinity: pin thread %d to CPUs %s: %w", tid, Format(cpus), err)
			}
		}
		if len(bound) == before {
			return nil
		}
	}
}

// mostTried is how many numbers threads tries. A process is pinned soon after its start, so the
// numbers of its threads are near its own.
const mostTried = 1 << 15

// threads lists the threads of this process. It tries numbers, because Linux keeps what is listed
// in /proc/self/task until the threads end: on a full machine, it may then take a CPU for minutes
// from everything else, in the parent's wait for this process (d_walk, Linux 6.18).
func threads() (tids []int, err error) {
	self, err := procfs.Self()
	if err != nil {
		return nil, fmt.Errorf("affinity: count the threads of this process: %w", err)
	}
	stat, err := self.Stat()
	if err != nil {
		return nil, fmt.Errorf("affinity: count the threads of this process: %w", err)
	}
	pid := os.Getpid()
	for tid := pid; len(tids) < stat.NumThreads; tid++ {
		if tid == pid+mostTried { // Linux has begun again with small numbers, or a thread has ended.
			return listed(pid)
		}
		if unix.Tgkill(pid, tid, 0) == nil {
			tids = append(tids, tid)
		}
	}
	return tids, nil
}

// listed lists the threads of a process in /proc.
func listed(pid int) (tids []int, err error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return nil, fmt.Errorf("affinity: list the threads of this process: %w", err)
	}
	for _, thread := range threads {
		tids = append(tids, thread.PID)
	}
	return tids, nil
}

// Divide returns the share of one of n ranks that may use the same CPUs. Shares are contiguous,
// cover all CPUs, and differ in size by at most one. If there are more ranks than CPUs, ranks share
// CPUs.
func Divide(allowed []int, index, n int) []int {
	if len(allowed) < n {
		i := index % len(allowed)
		return allowed[i : i+1]
	}
	return allowed[index*len(allowed)/n : (index+1)*len(allowed)/n]
}

// Format formats CPUs as Linux does: "0-3,8".
func Format(cpus []int) string {
	sorted := slices.Sorted(slices.Values(cpus))
	text := ""
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		if text != "" {
			text += ","
		}
		text += strconv.Itoa(sorted[i])
		if j > i {
			text += "-" + strconv.Itoa(sorted[j])
		}
		i = j + 1
	}
	return text
}
