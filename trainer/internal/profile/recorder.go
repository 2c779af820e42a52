// Package profile records what each rank does during some updates, and writes it as a trace that
// Perfetto and Chrome open.
package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gonbatch/distributed"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// Recorder records the configured updates of a training. A nil one records nothing. Several
// goroutines may Add to it at once.
type Recorder struct {
	mu          sync.Mutex
	on          bool
	spans       []span
	world       *distributed.World
	first, last int64
	began       int64 // Updates that were done when the recording began.
}

// Limits returns the first and the last update of steps such as "10-15"; 0 if there are none.
func Limits(steps string) (first, last int64, err error) {
	if steps == "" {
		return 0, 0, nil
	}
	from, to, isRange := strings.Cut(steps, "-")
	if !isRange {
		to = from
	}
	first, firstErr := strconv.ParseInt(strings.TrimSpace(from), 10, 64)
	last, lastErr := strconv.ParseInt(strings.TrimSpace(to), 10, 64)
	if firstErr != nil || lastErr != nil || first < 1 || last < first {
		return 0, 0, fmt.Errorf("profile.steps: %q: it must be the first and the last update, such as 10-15, counted from 1", steps)
	}
	if last-first >= maxRecorded {
		return 0, 0, fmt.Errorf("profile.steps: %q: these are %s, and a trace can have at most %d: it is kept in memory", steps, plural.Of(last-first+1, "update"), maxRecorded)
	}
	return first, last, nil
}

// maxRecorded limits the updates in a trace: all ranks have it in memory, as text, when it is
// written.
const maxRecorded = 10000

// New returns nil if there is nothing to record.
func New(w *distributed.World, steps string) (*Recorder, error) {
	first, last, err := Limits(steps)
	if err != nil || first == 0 {
		return nil, err
	}
	return &Recorder{world: w, first: first, last: last}, nil
}

// Add records a span of a track, if the recording is on. If the clock is set back meanwhile, it has
// no length.
func (r *Recorder) Add(where Track, name string, began, ended time.Time, step int64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.on {
		begin := began.UnixNano()
		r.spans = append(r.spans, span{name, where, begin, max(begin, ended.UnixNano()), step})
	}
}

// turn turns the recording on or off, and returns what was recorded before.
func (r *Recorder) turn(on bool) []span {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.spans
	r.on, r.spans = on, nil
	return before
}

// During returns a function that ends a span of the training, which begins now.
func (r *Recorder) During(name string) (end func()) {
	began := time.Now()
	return func() { r.Add(Training, name, began, time.Now(), 0) }
}

// Before starts the recording before the next batch, if it is time, and reports whether it is time
// to write it instead. All ranks call it, after this many updates.
func (r *Recorder) Before(done int64) (write bool) {
	switch {
	case r == nil:
	case r.on:
		return done >= r.last
	case done >= r.first-1 && done < r.last:
		r.began = done
		r.turn(true)
		r.world.RecordOperations()
	}
	return false
}

// IsOn reports whether the recording is on.
func (r *Recorder) IsOn() bool { return r != nil && r.on }

// Missed reports whether the first update to record is after this many.
func (r *Recorder) Missed(done int64) bool { return r != nil && !r.on && done < r.first }

// Drop ends a recording that is on, because the training has failed.
func (r *Recorder) Drop() {
	if r.IsOn() {
		r.turn(false)
		r.world.RecordedOperations()
	}
}

// Write writes the trace of all ranks on rank 0, to a file whose path begins with prefix, after
// this many updates, and ends the recording. It returns a line for people. A trace that can't be
// written is no error: a warning says so, with the name of the training. Write is collective.
func (r *Recorder) Write(prefix, name, host string, done int64) (line string, err error) {
	operations, lost := r.world.RecordedOperations()
	own, err := json.Marshal(rankTrace{Host: host, Spans: r.turn(false), Operations: operations, Lost: lost})
	if err != nil {
		return "", err
	}
	all, err := r.world.AllGather(own)
	if err != nil || !r.world.IsMain() {
		return "", err
	}
	ranks := make([]rankTrace, len(all))
	for rank, text := range all {
		if err := json.Unmarshal(text, &ranks[rank]); err != nil {
			return "", fmt.Errorf("the trace of rank %d: %w", rank, err)
		}
	}
	steps := fmt.Sprintf("%d-%d", r.began+1, done)
	path := fmt.Sprintf("%s-steps-%s.json", prefix, steps)
	if err := r.world.Alone("writes a trace", func() error { return writeTrace(path, ranks) }); err != nil {
		fmt.Fprintf(os.Stderr, "trainer: %s: the trace of steps %s is not written: %v\n", name, steps, err)
		return "", nil
	}
	return fmt.Sprintf("steps %s: %s; https://ui.perfetto.dev opens %s", steps, strings.Join(ranks[0].summaries(ranks), "; "), path), nil
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
		if s.Track != Training {
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
