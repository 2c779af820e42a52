package rundir

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Programs are the numbers of the processes on this machine that belong to the run: its programs,
// and what these have started. Other users' processes and the calling process are left out.
func Programs(d Dir) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("processes of run %s: %w", d.Name(), err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err != nil {
			continue // It has ended, or is another user's.
		}
		if slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(v []byte) bool { return string(v) == EnvDir+"="+d.Path() }) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
