package local

import (
	"slices"
	"syscall"

	"gonbatch/internal/proc"
)

// killTree kills a process group and the groups that its processes have started: Open MPI's mpirun
// gives each rank its own group.
func killTree(group int) {
	groups := []int{group}
	for _, pid := range proc.Group(group) {
		for _, below := range proc.Below(pid) {
			if of, err := syscall.Getpgid(below); err == nil && !slices.Contains(groups, of) {
				groups = append(groups, of)
			}
		}
	}
	for _, g := range groups {
		_ = syscall.Kill(-g, syscall.SIGKILL) // It fails when all have ended.
	}
}
