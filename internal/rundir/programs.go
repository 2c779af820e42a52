package rundir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Programs returns the ids of the processes on this machine that belong to the run: its programs,
// and the processes that these have started. It leaves out other users' processes and the calling
// process.
func Programs(d Dir) ([]int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, fmt.Errorf("processes of run %s: %w", d.Name(), err)
	}
	var pids []int
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended, or belongs to another user.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid != os.Getpid() && slices.Contains(strings.Split(string(environ), "\x00"), EnvDir+"="+d.Path()) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
