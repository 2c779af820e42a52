package trainer

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// TestChromeTrace: random spans keep their times, spans of one row never overlap, and each rank is
// a process.
func TestChromeTrace(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	ranks := make([]rankTrace, 3)
	for rank := range ranks {
		ranks[rank].Host = "n1"
		for range 50 {
			begin := int64(1e18) + random.Int64N(1e6)
			ranks[rank].Spans = append(ranks[rank].Spans, span{"load", loadingTrack, begin, begin + random.Int64N(1e5), 0})
		}
	}
	content, err := chromeTrace(ranks)
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ TraceEvents []traceEvent }
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	until, total, first := map[[2]int]float64{}, 0, 1.0
	for _, e := range file.TraceEvents {
		if e.Phase != "X" {
			continue
		}
		row := [2]int{e.Process, e.Thread}
		if e.Begin < until[row]-1e-6 {
			t.Errorf("row %v: a span begins at %g, the last one ends at %g", row, e.Begin, until[row])
		}
		until[row] = e.Begin + e.Duration
		first = min(first, e.Begin)
		total++
	}
	if total != 150 || first != 0 {
		t.Errorf("%d spans from %g, want 150 from 0", total, first)
	}
}

func TestProfileSteps(t *testing.T) {
	for text, want := range map[string][2]int64{
		"": {}, "7": {7, 7}, "10-15": {10, 15}, " 10 - 15": {10, 15}, "0-3": {-1}, "5-4": {-1}, "-3": {-1}, "3-": {-1}, "a": {-1}, "1-2-3": {-1},
	} {
		first, last, err := ProfileConfig{Steps: text}.limits()
		if (err != nil) != (want[0] < 0) || err == nil && (first != want[0] || last != want[1]) {
			t.Errorf("%q: %d to %d, %v", text, first, last, err)
		}
	}
}
