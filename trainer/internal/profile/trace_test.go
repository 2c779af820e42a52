package profile

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gonbatch/distributed"
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
			ranks[rank].Spans = append(ranks[rank].Spans, span{"load", Loading, begin, begin + random.Int64N(1e5), 0})
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

// TestClockSetBack: a span that ends before it begins, by the clock, has no negative length.
func TestClockSetBack(t *testing.T) {
	var recording Recorder
	recording.turn(true)
	now := time.Now()
	recording.Add(Training, StepName, now, now.Add(-time.Second), 1)
	recording.Add(Training, StepName, now, now.Add(time.Second), 2)
	for i, want := range []int64{0, 1e9} {
		if s := recording.spans[i]; s.End-s.Begin != want {
			t.Errorf("step %d takes %d ns, want %d", s.Step, s.End-s.Begin, want)
		}
	}
}

func TestProfileSteps(t *testing.T) {
	for text, want := range map[string][2]int64{
		"": {}, "7": {7, 7}, "10-15": {10, 15}, " 10 - 15": {10, 15}, "0-3": {-1}, "5-4": {-1}, "-3": {-1}, "3-": {-1}, "a": {-1}, "1-2-3": {-1},
	} {
		first, last, err := Limits(text)
		if (err != nil) != (want[0] < 0) || err == nil && (first != want[0] || last != want[1]) {
			t.Errorf("%q: %d to %d, %v", text, first, last, err)
		}
	}
}

// ms is a time in the tests of operations.
const ms = int64(1e6)

// ranksInSteps are two ranks with two steps of 100 ms, whose clocks differ by an hour.
func ranksInSteps(operations ...[]distributed.Operation) []rankTrace {
	ranks := make([]rankTrace, len(operations))
	for rank, all := range operations {
		hour := int64(rank) * 3600e9
		r := rankTrace{Host: "n1", Operations: all}
		for step := range int64(2) {
			r.Spans = append(r.Spans, span{Name: StepName, Track: Training, Begin: hour + (100+200*step)*ms, End: hour + (200+200*step)*ms, Step: 7 + step})
		}
		for i := range all {
			all[i].Begin, all[i].End = hour+all[i].Begin*ms, hour+all[i].End*ms
		}
		ranks[rank] = r
	}
	return ranks
}

// TestInSteps: the parts of steps add up, whatever runs at once, and what is outside of the steps
// does not count.
func TestInSteps(t *testing.T) {
	const convolution, product, random = distributed.Convolution, distributed.Product, distributed.RandomBits
	for name, test := range map[string]struct {
		operations []distributed.Operation
		want       string
	}{
		"nothing":         {nil, ""},
		"outside":         {[]distributed.Operation{{Kind: convolution, Begin: 50, End: 90}, {Kind: product, Begin: 190, End: 210}}, ""},
		"apart":           {[]distributed.Operation{{Kind: convolution, Begin: 100, End: 140}, {Kind: random, Begin: 300, End: 310}, {Kind: product, Begin: 310, End: 330}}, "XLA 65%, convolutions 20%, products 10%, random bits 5%"},
		"two threads":     {[]distributed.Operation{{Kind: convolution, Begin: 100, End: 140}, {Kind: convolution, Begin: 120, End: 160}}, "XLA 70%, convolutions 30%"},
		"a wait meantime": {[]distributed.Operation{{Kind: distributed.WaitForSum, Begin: 100, End: 200}, {Kind: product, Begin: 120, End: 140}}, "XLA 50%, collectives 40%, products 10%"},
		"a sum travels":   {[]distributed.Operation{{Kind: distributed.TravellingSum, Begin: 100, End: 200}, {Kind: product, Begin: 120, End: 140}}, "XLA 90%, products 10%"},
	} {
		t.Run(name, func(t *testing.T) {
			ranks := ranksInSteps(test.operations)
			if got := ranks[0].inSteps(operationsOf(ranks)[0]); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestWaits: of the time that ranks are in a collective together, what is more than the last one's
// was waiting.
func TestWaits(t *testing.T) {
	sum := func(name string, begin, end int64) distributed.Operation {
		return distributed.Operation{Kind: distributed.WholeCollective, Name: name, Begin: begin, End: end}
	}
	grouped := sum("c", 350, 370)
	grouped.Grouped = true
	travels := distributed.Operation{Kind: distributed.TravellingSum, Name: "b", Begin: 310, End: 340}
	wait := distributed.Operation{Kind: distributed.WaitForSum, Name: "wait for b", Begin: 330, End: 340}
	ranks := ranksInSteps(
		[]distributed.Operation{sum("a", 110, 150), wait, travels, grouped},
		[]distributed.Operation{sum("a", 140, 150), {Kind: distributed.TravellingSum, Name: "b", Begin: 305, End: 341}, grouped, sum("d", 380, 390)},
	)
	all := operationsOf(ranks)
	type facts struct{ step, waited int64 }
	want := [][]facts{{{7, 30}, {8, 0}, {8, 0}, {8, 0}}, {{7, 0}, {8, 6}, {8, 0}, {8, 0}}}
	for rank := range all {
		for i, o := range all[rank] {
			if got := (facts{o.step, o.waited / ms}); got != want[rank][i] {
				t.Errorf("rank %d, %s: %v, want %v", rank, o.Name, got, want[rank][i])
			}
		}
	}
	ranks[1].Lost = 5
	got := strings.Join(ranks[0].summaries(ranks), "; ")
	wanted := "step 67%; within the steps: XLA 65%, collectives 35% (15% waiting for other ranks); the trace of rank 1 has the first 4 operations, without 5 later ones: record fewer steps"
	if got != wanted {
		t.Errorf("got %q, want %q", got, wanted)
	}
}
