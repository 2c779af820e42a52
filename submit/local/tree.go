package local

import (
	"syscall"

	"github.com/prometheus/procfs"
)

// killTree kills a process group and the groups that its processes have started: Open MPI's mpirun
// gives each rank its own group.
func killTree(group int) {
	started := startedBy(group)
	for _, g := range append([]int{group}, started...) {
		_ = syscall.Kill(-g, syscall.SIGKILL) // It fails when all have ended.
	}
}

// startedBy returns the process groups of the descendants of a group's processes, except the group
// itself.
func startedBy(group int) (groups []int) {
	processes, _ := procfs.AllProcs() // Without /proc there are none.
	children := map[int][]procfs.ProcStat{}
	var open []int
	for _, p := range processes {
		stat, err := p.Stat()
		if err != nil {
			continue // It has ended.
		}
		children[stat.PPID] = append(children[stat.PPID], stat)
		if stat.PGRP == group {
			open = append(open, stat.PID)
		}
	}
	seen := map[int]bool{group: true}
	for len(open) > 0 {
		parent := open[0]
		open = open[1:]
		for _, child := range children[parent] {
			if child.PGRP != group {
				open = append(open, child.PID)
			}
			if !seen[child.PGRP] {
				seen[child.PGRP] = true
				groups = append(groups, child.PGRP)
			}
		}
	}
	return groups
}
