package profile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/gomlx/compute/support/xslices"

	"gonbatch/distributed"
)

// span is a time in which a rank does one thing.
type span struct {
	Name  string `json:"name"`
	Track Track  `json:"track"`
	Begin int64  `json:"begin"` // Nanoseconds since 1970.
	End   int64  `json:"end"`
	Step  int64  `json:"step,omitempty"` // The update that it is a part of; 0 if it is of none.
}

// Track is a row of spans. Those of loading may overlap, because several batches are loaded at
// once.
type Track string

// The tracks of what is added.
const (
	Training Track = "training"
	Loading  Track = "loading"
)

// rankTrace is what one rank has recorded.
type rankTrace struct {
	Host       string                  `json:"host"`
	Spans      []span                  `json:"spans"`
	Operations []distributed.Operation `json:"operations,omitempty"` // Of compiled programs.
	Lost       int                     `json:"lost,omitempty"`       // Operations that there was no memory for.
}

// traceEvent is an event of the Trace Event Format of Chrome, which Perfetto opens:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
type traceEvent struct {
	Phase    string         `json:"ph"`
	Name     string         `json:"name"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Begin    float64        `json:"ts"` // Microseconds.
	Duration float64        `json:"dur,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// chromeTrace returns the traces of all ranks as a file: each rank is a process in it, and each row
// of spans a thread.
func chromeTrace(ranks []rankTrace) ([]byte, error) {
	var events []traceEvent
	zero, operations := firstOf(ranks), operationsOf(ranks)
	for rank, r := range ranks {
		events = append(events, traceEvent{Phase: "M", Name: "process_name", Process: rank, Args: map[string]any{"name": rankOn(rank, r.Host)}})
		rows := map[Track]int{}
		for _, s := range slices.Concat(r.placed(Training), rowsOf(operations[rank]), inRows(r.placed(Loading), Loading)) {
			if _, ok := rows[s.row]; !ok {
				rows[s.row] = len(rows)
				events = append(events, traceEvent{Phase: "M", Name: "thread_name", Process: rank, Thread: rows[s.row], Args: map[string]any{"name": s.row}})
			}
			e := traceEvent{Phase: "X", Name: s.Name, Process: rank, Thread: rows[s.row], Begin: micros(s.Begin - zero), Duration: micros(s.End - s.Begin)}
			if s.Step > 0 {
				e.Args = map[string]any{"step": s.Step}
				maps.Copy(e.Args, s.more)
			}
			events = append(events, e)
		}
	}
	return json.Marshal(map[string]any{"displayTimeUnit": "ms", "traceEvents": events})
}

func micros(nanoseconds int64) float64 { return float64(nanoseconds) / 1e3 }

// firstOf returns when the first span of all ranks begins.
func firstOf(ranks []rankTrace) (first int64) {
	for _, r := range ranks {
		for _, s := range r.Spans {
			if first == 0 || s.Begin < first {
				first = s.Begin
			}
		}
	}
	return first
}

// placedSpan is a span in its row.
type placedSpan struct {
	span
	row  Track
	more map[string]any // What else the viewer shows of a span of a step.
}

// of returns the spans of a track in the order of their beginnings.
func (r rankTrace) of(where Track) (all []span) {
	for _, s := range r.Spans {
		if s.Track == where {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.Begin, b.Begin) })
	return all
}

// placed returns the spans of a track in the row of its name.
func (r rankTrace) placed(where Track) []placedSpan {
	return xslices.Map(r.of(where), func(s span) placedSpan { return placedSpan{span: s, row: where} })
}

// inRows puts the spans, which are in the order of their beginnings, in as few rows as possible.
// Those that overlap are in different ones: "loading 1", "loading 2".
func inRows(all []placedSpan, name Track) []placedSpan {
	var busy []int64 // Until when each row is.
	for i, s := range all {
		row := slices.IndexFunc(busy, func(until int64) bool { return until <= s.Begin })
		if row < 0 {
			row, busy = len(busy), append(busy, 0)
		}
		busy[row] = s.End
		all[i].row = Track(fmt.Sprintf("%s %d", name, row+1))
	}
	return all
}

func rankOn(rank int, host string) string { return fmt.Sprintf("rank %d on %s", rank, host) }
