package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"gonbatch/distributed/pjrt"
)

// cost is what operations of one name took in all recorded steps.
type cost struct {
	name  string
	took  time.Duration
	calls int
}

// mostOperations is how many operations are recorded.
const mostOperations = 1 << 16

// costsOf adds up the operations by their names, the most expensive first.
func costsOf(operations []pjrt.Operation) []cost {
	byName := map[string]cost{}
	for _, o := range operations {
		c := byName[o.Name]
		byName[o.Name] = cost{o.Name, c.took + time.Duration(o.End-o.Begin), c.calls + 1}
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b cost) int { return cmp.Compare(b.took, a.took) })
}

// writeProfile writes a table of what the custom calls took in a step. What is left is XLA's own.
func writeProfile(w io.Writer, operations []pjrt.Operation, steps int, step time.Duration) {
	all := time.Duration(0)
	fmt.Fprintf(w, "| operation | calls a step | ms a step | share |\n|---|--:|--:|--:|\n")
	row := func(name string, calls string, took time.Duration) {
		ms := float64(took.Microseconds()) / 1000
		fmt.Fprintf(w, "| %s | %s | %.2f | %.0f %% |\n", name, calls, ms, 100*float64(took)/float64(step))
	}
	for _, c := range costsOf(operations) {
		took := c.took / time.Duration(steps)
		all += took
		row(c.name, fmt.Sprint(c.calls/steps), took)
	}
	row("XLA", "", step-all)
	row("step", "", step)
}
