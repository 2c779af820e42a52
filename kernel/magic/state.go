package magic

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonbatch/internal/rundir"
	"gonbatch/submit/report"
)

// state is the state of a job.
type state struct {
	Job Job
	// Run is the submit command's report about the run.
	Run report.Run
	// Step is the last step with metrics.
	Step int64
	// Metrics are the newest values, by name; Losses are the curves of the losses.
	Metrics map[string]float64
	Losses  []series
	// Progress is rank 0's own progress report, Log the end of its log.
	Progress progress
	Log      []string
}

func (s state) ended() bool { return s.Run.Ended }

func (s state) completed() bool { return s.Run.State == "completed" }

// explanation says why the job ended. If the reason comes from the submit command, it is prefixed
// with the job's name.
func (s state) explanation() string {
	if strings.HasPrefix(s.Run.Failure, "job "+s.Job.ID) {
		return s.Run.Failure
	}
	if s.Run.Failure != "" {
		return fmt.Sprintf("job %s: %s", s.Job.ID, s.Run.Failure)
	}
	return s.title()
}

// unsaidLog returns the end of the log, unless the reason already contains it.
func (s state) unsaidLog() []string {
	if n := len(s.Log); n > 0 && strings.Contains(s.Run.Failure, strings.TrimSpace(s.Log[n-1])) {
		return nil
	}
	return s.Log
}

// addMetrics adds the run's measurements.
func (s *state) addMetrics(all []rundir.Measurement) {
	s.Metrics = map[string]float64{}
	for _, m := range all {
		s.Step = m.Step
		maps.Copy(s.Metrics, m.Values)
	}
	s.Losses = losses(all)
}

// jsonNumber returns a value for JSON: NaN and the infinities as text.
func jsonNumber(value float64) any {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Sprint(value)
	}
	return value
}

// mostMeasures is the maximum number of lines of metrics on a card.
const mostMeasures = 12

// measures returns the newest values, sorted by name. The epoch is left to the progress bar. If
// there are too many, those that say nothing about the model are left out first.
func (s state) measures() []string {
	var parts []string
	if s.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", s.Step))
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.Metrics)), func(name string) bool { return name == "epoch" })
	all := len(names)
	if room := mostMeasures - len(parts); all > room {
		slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(aboutSpeed(a), aboutSpeed(b)) })
		names = slices.Sorted(slices.Values(names[:room-1]))
	}
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %.4g", name, s.Metrics[name]))
	}
	if left := all - len(names); left > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", left))
	}
	return parts
}

// aboutSpeed returns 1 for a metric about the training run, such as its speed, and 0 for one about
// the model.
func aboutSpeed(name string) int {
	for _, end := range []string{"learning_rate", "examples_per_second", "data_wait", "loss_scale"} {
		if strings.HasSuffix(name, end) {
			return 1
		}
	}
	return 0
}
