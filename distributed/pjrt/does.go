package pjrt

import (
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Reduction is how an all-reduce or a reduce-scatter combines the values of the ranks. The numbers
// are those of a transport.
type Reduction int

// The reductions. With a transport, the minimum or maximum of floats is NaN if one of them is, and
// -0 is less than 0. XLA's own may differ.
const (
	Sum Reduction = iota
	Min
	Max
)

var reductionNames = []string{"sum", "min", "max"}

func (r Reduction) String() string { return reductionNames[r] }

// does is what a collective does, apart from the type and shape of its values.
type does struct {
	op        op
	reduction Reduction
	// root is the place, in its group, of the rank that a broadcast begins at.
	root   int
	groups Groups
	// part is the half of a split collective, or how a whole one uses memory.
	part part
}

// part is the half of a collective that is split, so that the program computes meanwhile, or a
// whole collective.
type part string

// Of a sum over all ranks, start begins it, and finish waits for it. An all-gather in place
// replaces the values of the other ranks in the memory that has this rank's.
const (
	whole   part = ""
	start   part = "start_"
	finish  part = "finish_"
	inPlace part = "in_place_"
)

// namePrefix begins the names of all collectives.
const namePrefix = "gonbatch_"

// placeholders are the collectives in the graphs of this process, by the names of the functions
// that are replaced by them.
var placeholders sync.Map

// placeholder is a collective over a number of ranks.
type placeholder struct {
	does
	ranks int
}

// placeholderOf returns what replaces a function of that name.
func placeholderOf(name string) (p placeholder, ok bool) {
	found, ok := placeholders.Load(name)
	if ok {
		p = found.(placeholder)
	}
	return p, ok
}

// register returns the name of the function that is replaced by the collective: the number is that
// of the function in its graph.
func (d does) register(number int) string {
	ranks := registeredRanks()
	name := fmt.Sprintf("%s_%d", d.name(ranks), number)
	placeholders.Store(name, placeholder{d, ranks})
	return name
}

// target returns the beginning of the name over a number of ranks. The number is part of the name,
// so that XLA refuses a program for another number.
func (d does) target(ranks int) string {
	name := "gonbatch_" + string(d.part) + opNames[d.op]
	if d.op.reduces() {
		name += "_" + d.reduction.String()
	}
	return fmt.Sprintf("%s_over_%d", name, ranks)
}

// name returns the name of a function in a graph that is replaced by the collective, without the
// function's number.
func (d does) name(ranks int) string {
	name := d.target(ranks)
	if d.op == broadcast {
		name += fmt.Sprintf("_from%d", d.root)
	}
	if d.groups != nil {
		name += "_in" + d.groups.name()
	}
	return name
}

// collectiveTarget returns the name of the custom call of all collectives but halves. It reads what
// to do from an operand, the form. A change of the form needs another name, because compiled
// programs are cached.
func collectiveTarget(ranks int) string { return fmt.Sprintf("gonbatch_collective_2_over_%d", ranks) }

// inPlace reports whether the collective needs no memory besides its operand's.
func (d does) inPlace() bool { return d.op == allReduce || d.op == broadcast || d.part == inPlace }

// form returns the numbers that tell a custom call what to do: the kind, whether it is in place,
// and the form of a transport.
func (d does) form() []int {
	form := []int{int(d.op), number(d.inPlace()), d.detail(), int(d.reduction), d.root, d.groups.ranks()}
	return append(form, d.groups.places()...)
}

// detail returns a number that is the same on ranks that agree about the reduction, the root and
// the groups: see watch.Collective.
func (d does) detail() int {
	detail := int(d.reduction) | d.root<<2
	if d.groups != nil {
		detail |= int(crc32.ChecksumIEEE([]byte(d.groups.name()))) << 31
	}
	return detail
}

// Groups divides the ranks into groups of the same size. Each collective is then one of each group,
// and the order of its members is that of the list. All ranks must name the same groups, with each
// rank in one of them. Nil is one group of all ranks.
type Groups [][]int

// Check returns an error if the groups don't divide that many ranks.
func (g Groups) Check(ranks int) error {
	if g == nil {
		return nil
	}
	seen := make([]bool, ranks)
	for _, members := range g {
		if len(members) == 0 || len(members) != len(g[0]) {
			return fmt.Errorf("the groups %v: all must have the same size, because all ranks run the same program", g)
		}
		for _, rank := range members {
			if rank < 0 || rank >= ranks || seen[rank] {
				return g.wrong(ranks)
			}
			seen[rank] = true
		}
	}
	if slices.Contains(seen, false) {
		return g.wrong(ranks)
	}
	return nil
}

func (g Groups) wrong(ranks int) error {
	return fmt.Errorf("the groups %v: each rank from 0 to %d must be in one of them, once", g, ranks-1)
}

// orAll returns the groups, even if there is only the one of all ranks.
func (g Groups) orAll(ranks int) Groups {
	if g != nil {
		return g
	}
	all := make([]int, ranks)
	for rank := range all {
		all[rank] = rank
	}
	return Groups{all}
}

// size returns the number of ranks in a group.
func (g Groups) size(ranks int) int {
	if g == nil {
		return ranks
	}
	return len(g[0])
}

// ranks returns the number of ranks in all groups.
func (g Groups) ranks() (n int) {
	for _, members := range g {
		n += len(members)
	}
	return n
}

// places returns the number of its group and its place in the group for each rank, one rank after
// the other.
func (g Groups) places() []int {
	places := make([]int, 2*g.ranks())
	for number, members := range g {
		for place, rank := range members {
			places[2*rank], places[2*rank+1] = number, place
		}
	}
	return places
}

// name writes the groups as a part of a name: [[0, 2], [1, 3]] is 0a2o1a3.
func (g Groups) name() string {
	all := make([]string, len(g))
	for i, members := range g {
		all[i] = strings.Join(texts(members), "a")
	}
	return strings.Join(all, "o")
}

func texts(numbers []int) []string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = strconv.Itoa(n)
	}
	return all
}
