package pjrt

import (
	"slices"
	"strings"

	"gonbatch/distributed/stablehlo"
)

// flow is the main function of a program, with what each of its values is computed from.
type flow struct {
	*stablehlo.Function
	parameters map[string]int           // By name.
	by         map[string]*stablehlo.Op // What computes a value.
	returned   []string                 // The results.
}

// flowOf reports false for a program without a main function of the usual form.
func flowOf(m *stablehlo.Module) (f *flow, ok bool) {
	main := m.Main()
	if main == nil || len(main.Ops) == 0 {
		return nil, false
	}
	last := main.Ops[len(main.Ops)-1]
	if last.Name != "stablehlo.return" || len(last.Operands) != len(main.Results) {
		return nil, false
	}
	f = &flow{Function: main, parameters: map[string]int{}, returned: last.Operands}
	for i, v := range main.Parameters {
		f.parameters[v.Name] = i
	}
	f.index()
	return f, true
}

// index finds what the values are computed from, after a change.
func (f *flow) index() {
	f.by = map[string]*stablehlo.Op{}
	for _, o := range f.Ops {
		for _, result := range o.Results {
			f.by[result] = o
		}
	}
}

// kind returns the name of the operation that computes a value, without its dialect; "" if none
// does.
func (f *flow) kind(value string) string {
	o := f.by[value]
	if o == nil {
		return ""
	}
	return strings.TrimPrefix(o.Name, "stablehlo.")
}

// isFill reports whether a value is an array that is filled with one number.
func (f *flow) isFill(value string) bool {
	return f.kind(value) == "broadcast_in_dim" && f.by[value].Types[0] == "tensor<f32>"
}

// readers counts the operations that read each value. Only those count on which the results of the
// function depend.
func (f *flow) readers() map[string]int {
	readers := map[string]int{}
	isRead := func(result string) bool { return readers[result] > 0 }
	for _, o := range slices.Backward(f.Ops) {
		if len(o.Results) > 0 && !slices.ContainsFunc(o.Results, isRead) {
			continue
		}
		for _, name := range o.Uses() {
			readers[name]++
		}
	}
	return readers
}

// reshaped returns what a value is a reshape of, or the value, and whether nothing else reads it.
func (f *flow) reshaped(value string, readers map[string]int) (name string, alone bool) {
	alone = readers[value] == 1
	for f.kind(value) == "reshape" {
		value = f.by[value].Operands[0]
		alone = alone && readers[value] == 1
	}
	return value, alone
}

// own returns a name for a value that belongs to another one.
func own(what, name string) string { return "%gonbatch_" + what + "_" + strings.TrimPrefix(name, "%") }
