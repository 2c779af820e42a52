package trainer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// ProfileConfig records what each rank does during some updates: waiting for batches, steps,
// callbacks, validations and checkpoints, and the loading of the batches. Within a step, on CPUs,
// it records the convolutions and products that oneDNN computes, and the collectives; what is
// between them is XLA's own. Rank 0 writes the trace of all ranks as a file that
// https://ui.perfetto.dev and chrome://tracing open.
type ProfileConfig struct {
	// Steps are the first and the last update to record, such as "10-15", counted from 1. What
	// follows the last one belongs to it, until the next batch. Default: none.
	Steps string `yaml:"steps" help:"updates to record in a trace for Perfetto, such as 10-15 (empty: none)"`
	// Dir is the folder of the trace. Default: traces in the run directory.
	Dir string `yaml:"dir" help:"folder of the trace (default: traces in the run directory)"`
}

// limits returns the first and the last update; 0 if there are none.
func (c ProfileConfig) limits() (first, last int64, err error) {
	if c.Steps == "" {
		return 0, 0, nil
	}
	from, to, isRange := strings.Cut(c.Steps, "-")
	if !isRange {
		to = from
	}
	first, firstErr := strconv.ParseInt(strings.TrimSpace(from), 10, 64)
	last, lastErr := strconv.ParseInt(strings.TrimSpace(to), 10, 64)
	if firstErr != nil || lastErr != nil || first < 1 || last < first {
		return 0, 0, fmt.Errorf("profile.steps: %q: it must be the first and the last update, such as 10-15, counted from 1", c.Steps)
	}
	if last-first >= maxProfiled {
		return 0, 0, fmt.Errorf("profile.steps: %q: these are %s, and a trace can have at most %d: it is kept in memory", c.Steps, plural.Of(last-first+1, "update"), maxProfiled)
	}
	return first, last, nil
}

// maxProfiled limits the updates in a trace: all ranks have it in memory, as text, when it is
// written.
const maxProfiled = 10000

// profileDir returns the folder of the trace; "" if nothing is recorded.
func (c Config) profileDir(env rundir.Env) (string, error) {
	switch {
	case c.Profile.Steps == "" || c.Profile.Dir != "":
		return c.Profile.Dir, nil
	case env.InRun():
		return env.Dir.Traces(), nil
	}
	return "", errors.New("profile.steps: there is no run directory for the trace: set profile.dir")
}

// profiler records the configured updates.
type profiler struct {
	trace
	first, last int64
	began       int64 // Updates that were done when the recording began.
}

// newProfiler returns nil if there is nothing to record.
func newProfiler(c ProfileConfig) (*profiler, error) {
	first, last, err := c.limits()
	if err != nil || first == 0 {
		return nil, err
	}
	return &profiler{first: first, last: last}, nil
}

// trace returns where to record; nil if there is nothing to record.
func (t *Trainer) trace() *trace {
	if t.profiler == nil {
		return nil
	}
	return &t.profiler.trace
}

// profile starts or ends the recording, if it is time. All ranks call it before each batch.
func (r *run) profile() error {
	p := r.profiler
	switch {
	case p == nil:
		return nil
	case p.on && r.at.Step >= p.last:
		return r.writeProfile()
	case !p.on && r.at.Step >= p.first-1 && r.at.Step < p.last:
		p.began = r.at.Step
		p.start()
		r.world.RecordOperations()
	}
	return nil
}

// endProfile ends the recording with the training. If it hasn't begun by then, nobody would know
// why there is no trace.
func (r *run) endProfile() error {
	switch p := r.profiler; {
	case p == nil:
		return nil
	case p.on:
		return r.writeProfile()
	case r.at.Finished && r.at.Step < p.first:
		r.printf("%sprofile.steps is %q, but the training has ended after step %d: there is no trace\n", r.label(), r.config.Profile.Steps, r.at.Step)
	}
	return nil
}

// dropProfile ends a recording that is on, because the training has failed.
func (t *Trainer) dropProfile() {
	if p := t.profiler; p != nil && p.on {
		p.stop()
		t.world.RecordedOperations()
	}
}

// writeProfile writes the trace of all ranks on rank 0. A trace that can't be written does not end
// the training.
func (r *run) writeProfile() error {
	operations, lost := r.world.RecordedOperations()
	own, err := json.Marshal(rankTrace{Host: hostname(), Spans: r.profiler.stop(), Operations: operations, Lost: lost})
	if err != nil {
		return err
	}
	all, err := r.world.AllGather(own)
	if err != nil || !r.world.IsMain() {
		return err
	}
	ranks := make([]rankTrace, len(all))
	for rank, text := range all {
		if err := json.Unmarshal(text, &ranks[rank]); err != nil {
			return fmt.Errorf("the trace of rank %d: %w", rank, err)
		}
	}
	steps := fmt.Sprintf("%d-%d", r.profiler.began+1, r.at.Step)
	path := filepath.Join(r.config.Profile.Dir, fmt.Sprintf("%s-steps-%s.json", fileName(r.config.Name), steps))
	if err := r.world.Alone("writes a trace", func() error { return writeTrace(path, ranks) }); err != nil {
		fmt.Fprintf(os.Stderr, "trainer: %s: the trace of steps %s is not written: %v\n", r.config.Name, steps, err)
		return nil
	}
	r.printf("%ssteps %s: %s; https://ui.perfetto.dev opens %s\n", r.label(), steps, strings.Join(ranks[0].summaries(ranks), "; "), path)
	return nil
}

// summaries returns what rank 0 did in the recording, and then within its steps.
func (r rankTrace) summaries(all []rankTrace) []string {
	texts := []string{r.summary()}
	if inSteps := r.inSteps(operationsOf(all)[0]); inSteps != "" {
		texts = append(texts, "within the steps: "+inSteps)
	}
	for rank, other := range all {
		if other.Lost > 0 {
			texts = append(texts, fmt.Sprintf("the trace of rank %d has the first %d operations, without %d later ones: record fewer steps", rank, len(other.Operations), other.Lost))
			break
		}
	}
	return texts
}

func writeTrace(path string, ranks []rankTrace) error {
	content, err := chromeTrace(ranks)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return err
	}
	return rundir.WriteFileAtomic(path, content, 0o600)
}

// summary returns the share of each phase of the training: "step 81%, wait for batch 12%". It
// leaves out what takes less than a half percent.
func (r rankTrace) summary() string {
	total, parts := int64(0), map[string]int64{}
	begin := firstOf([]rankTrace{r})
	for _, s := range r.Spans {
		if s.Track != trainingTrack {
			continue
		}
		parts[s.Name] += s.End - s.Begin
		total = max(total, s.End-begin)
	}
	return shares(parts, total, nil)
}

// shares lists the parts of a total, the largest first, each with its note.
func shares(parts map[string]int64, total int64, notes map[string]string) string {
	names := slices.SortedFunc(maps.Keys(parts), func(a, b string) int { return cmp.Or(cmp.Compare(parts[b], parts[a]), strings.Compare(a, b)) })
	var text []string
	for _, name := range names {
		if share := 100 * float64(parts[name]) / float64(total); share >= 0.5 {
			text = append(text, fmt.Sprintf("%s %.0f%%", name, share)+notes[name])
		}
	}
	return strings.Join(text, ", ")
}
