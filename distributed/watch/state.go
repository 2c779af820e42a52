package watch

import (
	"cmp"
	"fmt"
	"time"
)

// Kind is a kind of collective.
type Kind int32

// The kinds of collectives, with the numbers that a transport of package pjrt has for them.
const (
	AllReduce Kind = iota + 1
	Broadcast
	AllGather
	Barrier
	ReduceScatter
	AllToAll
)

var kindNames = map[Kind]string{AllReduce: "all-reduce", Broadcast: "broadcast", AllGather: "all-gather", Barrier: "barrier", ReduceScatter: "reduce-scatter", AllToAll: "all-to-all"}

func (k Kind) String() string { return cmp.Or(kindNames[k], "collective") }

// The element types of collectives, with XLA's numbers (xla::PrimitiveType).
const (
	Bytes    = 6
	Int32    = 4
	Int64    = 5
	Float16  = 10
	Float32  = 11
	Float64  = 12
	BFloat16 = 16
)

var typeNames = map[int32]string{Bytes: "bytes", Int32: "int32", Int64: "int64", Float16: "float16", Float32: "float32", Float64: "float64", BFloat16: "bfloat16"}

// Collective is a collective that a rank has entered. All fields must be equal on all ranks.
type Collective struct {
	// Number counts a rank's collectives from 1.
	Number uint64
	Kind   Kind
	Type   int32
	Count  int64
	// Detail encodes what else must be equal on all ranks. Its lowest 2 bits are the reduction (0
	// sum, 1 minimum, 2 maximum). The next 29 are the root of a broadcast: its place in its group.
	// The others are 0 if the ranks aren't divided into groups, else a checksum of the groups.
	Detail int64
}

// String returns a description for people, such as "all-reduce 17 (421642 float32)" or "all-reduce
// 18 (maximum of 1 int32, in groups #3f2a1b0c)".
func (c Collective) String() string {
	if c.Kind == Barrier {
		return fmt.Sprintf("%s %d", c.Kind, c.Number)
	}
	name, ok := typeNames[c.Type]
	if !ok {
		name = fmt.Sprintf("elements of type %d", c.Type)
	}
	reduction := []string{"", "minimum of ", "maximum of ", ""}[c.Detail&3]
	from, groups := "", ""
	if root := c.Detail >> 2 & (1<<29 - 1); root != 0 {
		from = fmt.Sprintf(" from %d", root)
	}
	if sum := c.Detail >> 31; sum != 0 {
		groups = fmt.Sprintf(", in groups #%08x", sum)
	}
	return fmt.Sprintf("%s %d (%s%d %s%s%s)", c.Kind, c.Number, reduction, c.Count, name, from, groups)
}

// State is what a rank is doing.
type State struct {
	// Step is the last step that the rank reported, 0 if none. Busy means that it is training.
	Step int64
	Busy bool
	// Entered and Left count collectives. Since is the time since the last of these events.
	Entered, Left uint64
	Since         time.Duration
	// Recent are the collectives entered since the last message, including the current one.
	Recent []Collective
	// Current is the collective that was entered last.
	Current Collective
	// Closing means that the rank has finished its work and waits for the others to finish theirs.
	Closing bool
	// Told means that the rank was told to stop, by a signal.
	Told bool
	// Problem is the error of a failed collective, while the rank waits for a verdict.
	Problem string
	// Alone names the work that the rank does by itself, or is empty; AloneFor is for how long.
	// Moved is the time since such work last began, ended or advanced; 0 if it never has.
	Alone           string
	AloneFor, Moved time.Duration
}

// waiting reports whether the rank is in a collective.
func (s State) waiting() bool { return s.Entered > s.Left }
