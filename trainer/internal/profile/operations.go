package profile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gomlx/compute/support/xslices"

	"gonbatch/distributed"
)

// operation is one of a compiled program, in the trace of its rank.
type operation struct {
	distributed.Operation
	step   int64 // The update that it is a part of; 0 if it is of none.
	waited int64 // Nanoseconds that a collective waited for other ranks.
}

// operationsOf returns the operations of each rank.
func operationsOf(ranks []rankTrace) [][]operation {
	all := make([][]operation, len(ranks))
	for rank, r := range ranks {
		all[rank] = r.inOrder()
		findSteps(all[rank], r.of(Training))
	}
	findWaits(all)
	return all
}

// inOrder returns the operations in the order of their beginnings.
func (r rankTrace) inOrder() []operation {
	all := xslices.Map(r.Operations, func(o distributed.Operation) operation { return operation{Operation: o} })
	slices.SortStableFunc(all, func(a, b operation) int { return cmp.Compare(a.Begin, b.Begin) })
	return all
}

// StepName is the name of the spans in which programs of updates run.
const StepName = "step"

// findSteps finds the steps in which operations lie. Both are in the order of their beginnings.
func findSteps(all []operation, training []span) {
	steps := slices.DeleteFunc(training, func(s span) bool { return s.Name != StepName })
	for i := range all {
		for len(steps) > 0 && steps[0].End < all[i].End {
			steps = steps[1:]
		}
		if len(steps) > 0 && steps[0].Begin <= all[i].Begin {
			all[i].step = steps[0].Step
		}
	}
}

func isCollective(o operation) bool {
	return o.Kind == distributed.WholeCollective || o.Kind == distributed.TravellingSum
}

// findWaits finds how long each rank waits for the others in a collective. They leave it together,
// and the last one to arrive doesn't wait, so the time that it takes is that of the transfer, and
// the rest is waiting, whatever the clocks of the nodes say.
func findWaits(ranks [][]operation) {
	collectives := make([][]*operation, len(ranks))
	for rank, all := range ranks {
		for i := range all {
			if isCollective(all[i]) {
				collectives[rank] = append(collectives[rank], &all[i])
			}
		}
	}
	for i, first := range collectives[0] {
		shortest := first.End - first.Begin
		for _, others := range collectives[1:] {
			if i >= len(others) || others[i].Name != first.Name {
				return // Some operations of a rank are lost.
			}
			shortest = min(shortest, others[i].End-others[i].Begin)
		}
		for _, all := range collectives {
			if !first.Grouped {
				all[i].waited = all[i].End - all[i].Begin - shortest
			}
		}
	}
}

const (
	operationsTrack Track = "operations"
	travellingTrack Track = "travelling sums"
)

// rowsOf places operations: in one row, or in several where they run at once, on different threads.
// A program runs on any of XLA's threads, so they have no rows of their own. Sums that travel while
// the program computes have one.
func rowsOf(all []operation) []placedSpan {
	var own, travelling []placedSpan
	for _, o := range all {
		p := placedSpan{span{o.Name, operationsTrack, o.Begin, o.End, o.step}, travellingTrack, o.details()}
		if o.Kind == distributed.TravellingSum {
			travelling = append(travelling, p)
		} else {
			own = append(own, p)
		}
	}
	return append(inRows(own, operationsTrack), travelling...)
}

// details returns what the viewer shows of an operation that is selected.
func (o operation) details() map[string]any {
	all := map[string]any{"thread": o.Thread}
	if o.waited > 0 {
		all["waited for other ranks (ms)"] = float64(o.waited) / 1e6
	}
	return all
}

// classes are the parts of a step. While two run at once, on different threads, the time is the
// first one's: what computes comes before what waits.
var classes = []struct {
	name  string
	kinds []distributed.OperationKind
}{
	{"convolutions", []distributed.OperationKind{distributed.Convolution}},
	{"products", []distributed.OperationKind{distributed.Product}},
	{"random bits", []distributed.OperationKind{distributed.RandomBits}},
	{"collectives", []distributed.OperationKind{distributed.WholeCollective, distributed.StartOfSum, distributed.WaitForSum}},
}

// inSteps returns the share of each class in the time of the steps, and that of all other code,
// which is XLA's; "" if there are no operations.
func (r rankTrace) inSteps(all []operation) string {
	total, covered, parts := int64(0), int64(0), map[string]int64{}
	for _, s := range r.of(Training) {
		if s.Name == StepName {
			total += s.End - s.Begin
		}
	}
	var times [][2]int64
	waited := int64(0)
	for _, class := range classes {
		for _, o := range all {
			if o.step > 0 && slices.Contains(class.kinds, o.Kind) {
				times = append(times, [2]int64{o.Begin, o.End})
				waited += o.waited
			}
		}
		length := lengthOf(times)
		parts[class.name], covered = length-covered, length
	}
	if covered == 0 {
		return ""
	}
	parts["XLA"] = total - covered
	notes := map[string]string{}
	if share := 100 * float64(min(waited, parts["collectives"])) / float64(total); share >= 0.5 {
		notes["collectives"] = fmt.Sprintf(" (%.0f%% waiting for other ranks)", share)
	}
	return shares(parts, total, notes)
}

// lengthOf returns how long the times are together. It sorts them.
func lengthOf(times [][2]int64) (length int64) {
	slices.SortFunc(times, func(a, b [2]int64) int { return cmp.Compare(a[0], b[0]) })
	until := int64(0)
	for _, t := range times {
		length += max(0, t[1]-max(t[0], until))
		until = max(until, t[1])
	}
	return length
}
