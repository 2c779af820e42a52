package watch

import (
	"fmt"
	"time"
)

// Kind is a kind of collective.
type Kind int

// The kinds of collectives.
const (
	AllReduce Kind = iota + 1
	Broadcast
	AllGather
	Barrier
)

func (k Kind) String() string {
	switch k {
	case AllReduce:
		return "all-reduce"
	case Broadcast:
		return "broadcast"
	case AllGather:
		return "all-gather"
	case Barrier:
		return "barrier"
	}
	return "collective"
}

// The element types of collectives, as XLA numbers them (xla::PrimitiveType).
const (
	Bytes   = 6
	Int32   = 4
	Int64   = 5
	Float32 = 11
	Float64 = 12
)

var typeNames = map[int]string{Bytes: "bytes", Int32: "int32", Int64: "int64", Float32: "float32", Float64: "float64"}

// Collective is one that a rank has entered: the ranks must agree on all of it.
type Collective struct {
	// Number counts a rank's collectives from 1.
	Number uint64
	Kind   Kind
	Type   int
	Count  int64
}

// String is for people: "all-reduce 17 (421642 float32)".
func (c Collective) String() string {
	if c.Kind == Barrier {
		return fmt.Sprintf("%s %d", c.Kind, c.Number)
	}
	name, ok := typeNames[c.Type]
	if !ok {
		name = fmt.Sprintf("elements of type %d", c.Type)
	}
	return fmt.Sprintf("%s %d (%d %s)", c.Kind, c.Number, c.Count, name)
}

// State is what a rank is doing.
type State struct {
	// Step is the last that the rank reported, 0 if none. Busy tells that it is in the midst of
	// training.
	Step int64
	Busy bool
	// Entered and Left count collectives; Since is the time since the last of either.
	Entered, Left uint64
	Since         time.Duration
	// Recent are collectives that were entered since the last message, the current one included.
	Recent []Collective
	// Current is the last one that was entered.
	Current Collective
	// Closing tells that the rank has ended its work and waits for the others to do so.
	Closing bool
	// Told tells that the rank was told to stop, by a signal.
	Told bool
	// Problem is the error of a collective that failed, while the rank waits for somebody to know
	// why.
	Problem string
}

// waiting reports whether the rank is in a collective.
func (s State) waiting() bool { return s.Entered > s.Left }
