package magic

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/report"
)

// state is how a job is doing.
type state struct {
	Job Job
	// Run is what the submit command reports of the run.
	Run report.Run
	// Step is the last step of the training that has metrics.
	Step int64
	// Metrics are the newest values, by name; Losses are those that are losses, over time.
	Metrics map[string]float64
	Losses  []series
	// Ranks say where each rank runs and how it is doing; without any, nobody has told yet.
	Ranks []rank
	// Progress is how far rank 0 says that it is, Log the end of its log.
	Progress progress
	Log      []string
}

// rank is a process of the job.
type rank struct {
	Number int
	place
	State rankState
}

// rankState is how a rank is doing, in a word.
type rankState string

const (
	starting rankState = "starting"
	runs     rankState = "running"
	done     rankState = "done"
	ended    rankState = "ended"
	failed   rankState = "failed"
)

func (s state) ended() bool { return s.Run.Ended }

func (s state) completed() bool { return s.Run.State == "completed" }

// explanation says why the job ended as it did. What the submit command says begins with the job's
// name.
func (s state) explanation() string {
	if strings.HasPrefix(s.Run.Failure, "job "+s.Job.ID) {
		return s.Run.Failure
	}
	if s.Run.Failure != "" {
		return fmt.Sprintf("job %s: %s", s.Job.ID, s.Run.Failure)
	}
	return s.title()
}

// unsaidLog is the end of the log, unless the reason has it already.
func (s state) unsaidLog() []string {
	if n := len(s.Log); n > 0 && strings.Contains(s.Run.Failure, strings.TrimSpace(s.Log[n-1])) {
		return nil
	}
	return s.Log
}

// rankState is how a rank is doing, by what the job and the ranks' report of a failure say.
func (s state) rankState(number int, placed bool, failure *rundir.Failure) rankState {
	switch {
	case failure != nil && failure.Rank == number:
		return failed
	case s.completed():
		return done
	case s.ended():
		return ended
	case placed:
		return runs
	}
	return starting
}

// addMetrics takes what the run measured.
func (s *state) addMetrics(all []rundir.Measurement) {
	s.Metrics = map[string]float64{}
	for _, m := range all {
		s.Step = m.Step
		maps.Copy(s.Metrics, m.Values)
	}
	s.Losses = losses(all)
}

// jsonNumber is a value as JSON has it: NaN and the infinities as text.
func jsonNumber(value float64) any {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Sprint(value)
	}
	return value
}

// mostMeasures is how many metrics a card has.
const mostMeasures = 12

// measures are the newest values, in the order of their names. The epoch is the progress bar's.
func (s state) measures() []string {
	var parts []string
	if s.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", s.Step))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Metrics)) {
		if name != "epoch" && len(parts) < mostMeasures {
			parts = append(parts, fmt.Sprintf("%s %.4g", name, s.Metrics[name]))
		}
	}
	return parts
}
