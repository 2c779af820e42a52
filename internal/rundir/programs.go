package rundir

import (
	"fmt"
	"os"
	"slices"

	"github.com/prometheus/procfs"
)

// Programs are the numbers of the processes on this machine that belong to the run: its programs,
// and what these have started. Other users' processes and the calling process are left out.
func Programs(d Dir) ([]int, error) {
	processes, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("processes of run %s: %w", d.Name(), err)
	}
	var pids []int
	for _, p := range processes {
		environ, err := p.Environ()
		if err != nil {
			continue // It has ended, or is another user's.
		}
		if p.PID != os.Getpid() && slices.Contains(environ, EnvDir+"="+d.Path()) {
			pids = append(pids, p.PID)
		}
	}
	return pids, nil
}
