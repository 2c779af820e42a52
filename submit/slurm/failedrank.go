package slurm

import (
	"regexp"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// taskEnded is srun's line about tasks that failed by themselves: "srun: error: n2: task 1: Exited
// with exit code 7", "tasks 1-3: Killed". Tasks that srun ends because of them are "Terminated".
var taskEnded = regexp.MustCompile(`^srun: error: \S+: tasks? ([0-9]+)[-,0-9]*: (\w+)`)

// searchedLines is how many lines at the end of the scheduler's log are searched.
const searchedLines = 1000

// failedRank finds the rank that failed first in the last cell that ran, from what the ranks have
// recorded, or from the log; 0 if neither names one. Ranks that were told to stop have recorded
// only that another failed, which may not even have started.
func failedRank(dir rundir.Dir) int {
	if end, ok := rundir.LastFailed(dir); ok && !end.Told {
		return end.Rank
	}
	lines, err := submit.LastLines(dir, dir.SchedulerLog(), searchedLines)
	if err != nil {
		return 0
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if strings.HasPrefix(lines[i], "gonbatch: "+cellTitle("")) {
			lines = lines[i:]
			break
		}
	}
	for _, line := range lines {
		if m := taskEnded.FindStringSubmatch(line); m != nil && m[2] != "Terminated" {
			return atoi(m[1])
		}
	}
	return 0
}
