package slurm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/job"
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
	for _, line := range lastCell(dir) {
		if m := taskEnded.FindStringSubmatch(line); m != nil && m[2] != "Terminated" {
			return atoi(m[1])
		}
	}
	return 0
}

// lastCell returns the lines of the job's log since the last cell began.
func lastCell(dir rundir.Dir) []string {
	lines, _ := submit.LastLines(dir, dir.SchedulerLog(), searchedLines) // Without a log, nothing is found in it.
	for i, line := range slices.Backward(lines) {
		if strings.HasPrefix(line, job.CellBegins) {
			return lines[i:]
		}
	}
	return lines
}

// launchFailed is srun's line about tasks that were not started: "srun: error: task 1 launch
// failed: Slurmd could not connect IO".
var launchFailed = regexp.MustCompile(`^srun: error: tasks? ([0-9]+)[-,0-9]* launch failed: (.*)`)

// stepWaits is srun's line while other steps hold the CPUs of the job's nodes: "srun: Job 75 step
// creation still disabled, retrying (Requested nodes are busy)". Then comes "srun: Step created for
// StepId=75.1".
var stepWaits = regexp.MustCompile(`^srun: (.*step creation (?:temporarily|still) disabled, retrying|Step created for )`)

// waitsForPlace reports whether there is no place for the last cell that ran, as srun has said.
func waitsForPlace(dir rundir.Dir) (waits bool) {
	for _, line := range lastCell(dir) {
		if m := stepWaits.FindStringSubmatch(line); m != nil {
			waits = !strings.HasPrefix(m[1], "Step created")
		}
	}
	return waits
}

// notStarted returns the failure of a rank that srun could not start, as it does not record its end
// itself; nil if there is none.
func notStarted(dir rundir.Dir, now time.Time) *rundir.Failure {
	for _, line := range lastCell(dir) {
		if m := launchFailed.FindStringSubmatch(line); m != nil {
			return &rundir.Failure{Kind: rundir.Died, Rank: atoi(m[1]), Time: now, ExitCode: 1, Error: fmt.Sprintf(
				"SLURM could not start it: %s; can its node see %s? Choose a folder that all nodes share with --run-root", m[2], dir.Path())}
		}
	}
	return nil
}
