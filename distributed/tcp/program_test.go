package tcp_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonbatch/distributed/tcp"
)

// The kinds and types of a transport: see package pjrt.
const (
	allReduce     = 1
	broadcast     = 2
	allGather     = 3
	reduceScatter = 5
	allToAll      = 6

	int32s    = 4
	int64s    = 5
	bytes8    = 6
	float16s  = 10
	float32s  = 11
	float64s  = 12
	bfloat16s = 16
)

// operation is a random collective of all ranks. The values are small integers, so that all types
// have exact sums.
type operation struct {
	kind, dtype, count, reduction, root int
	groups                              [][]int // Nil for all ranks.
	inPlace                             bool    // Of an all-gather.
}

// randomOperation often has a size at which the algorithm changes.
func randomOperation(random *rand.Rand, ranks int) operation {
	counts := []int{0, 1, 3, 100, 1 << 10, 1<<10 + 1, 4 << 10, 8<<10 + 1, 1 + random.IntN(20_000), 70_000 + random.IntN(30_000)}
	o := operation{kind: pick(random, []int{allReduce, allReduce, broadcast, allGather, reduceScatter, allToAll}), count: pick(random, counts)}
	o.dtype, o.reduction = pick(random, []int{int32s, int64s, bytes8, float32s, float64s}), random.IntN(3)
	if o.dtype == bytes8 && o.reduction == 0 {
		o.reduction = 1
	}
	if o.kind != allReduce && o.kind != reduceScatter && random.IntN(3) == 0 { // They can't be reduced.
		o.dtype = pick(random, []int{float16s, bfloat16s})
	}
	o.inPlace = o.kind == allGather && random.IntN(2) == 0
	size := ranks
	if random.IntN(2) == 0 {
		size = pick(random, divisors(ranks))
		o.groups = slices.Collect(slices.Chunk(random.Perm(ranks), size))
	}
	o.root = random.IntN(size)
	return o
}

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }

func divisors(n int) (all []int) {
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			all = append(all, d)
		}
	}
	return all
}

// members returns the rank's group, and its place there.
func (o operation) members(rank, ranks int) (members []int, place int) {
	for _, group := range o.groups {
		if i := slices.Index(group, rank); i >= 0 {
			return group, i
		}
	}
	for other := range ranks {
		members = append(members, other)
	}
	return members, rank
}

func (o operation) places(ranks int) []int64 {
	if o.groups == nil {
		return nil
	}
	places := make([]int64, 2*ranks)
	for number, group := range o.groups {
		for place, rank := range group {
			places[2*rank], places[2*rank+1] = int64(number), int64(place)
		}
	}
	return places
}

func element(rank, i int) int { return (i*7+rank*13)%29 + rank%3 }

// encoded returns n values as elements of the operation's type.
func (o operation) encoded(n int, value func(i int) int) []byte {
	var data []byte
	for i := range n {
		switch x := value(i); o.dtype {
		case bytes8:
			data = append(data, byte(x))
		case float16s, bfloat16s: // What the bits mean makes no difference.
			data = binary.LittleEndian.AppendUint16(data, uint16(x))
		case int32s:
			data = binary.LittleEndian.AppendUint32(data, uint32(x))
		case int64s:
			data = binary.LittleEndian.AppendUint64(data, uint64(x))
		case float32s:
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
		default:
			data = binary.LittleEndian.AppendUint64(data, math.Float64bits(float64(x)))
		}
	}
	return data
}

// want returns what the rank gets.
func (o operation) want(rank, ranks int) []byte {
	members, place := o.members(rank, ranks)
	switch o.kind {
	case broadcast:
		return o.encoded(o.count, func(i int) int { return element(members[o.root], i) })
	case allGather:
		return o.encoded(o.count*len(members), func(i int) int { return element(members[i/o.count], i%o.count) })
	case allToAll:
		return o.encoded(o.count*len(members), func(i int) int { return element(members[i/o.count], place*o.count+i%o.count) })
	case reduceScatter:
		return o.encoded(o.count, func(i int) int { return o.reduced(members, place*o.count+i) })
	}
	return o.encoded(o.count, func(i int) int { return o.reduced(members, i) })
}

func (o operation) reduced(members []int, i int) int {
	result := element(members[0], i)
	for _, rank := range members[1:] {
		switch x := element(rank, i); o.reduction {
		case 1:
			result = min(result, x)
		case 2:
			result = max(result, x)
		default:
			result += x
		}
	}
	return result
}

// run runs the operation and returns what the rank gets.
func (o operation) run(c *tcp.Comm) ([]byte, error) {
	members, place := o.members(c.Rank(), c.Size())
	of := func(parts int) []byte {
		return o.encoded(parts*o.count, func(i int) int { return element(c.Rank(), i) })
	}
	call := tcp.Call{Kind: o.kind, Type: o.dtype, Count: o.count, Reduction: o.reduction, Root: o.root, Places: o.places(c.Size())}
	switch o.kind {
	case allGather:
		own := of(1)
		call.Out = bytes.Repeat([]byte{7}, len(own)*len(members))
		if o.inPlace {
			copy(call.Out[place*len(own):], own)
		} else {
			call.In = own
		}
	case reduceScatter:
		call.In, call.Out = of(len(members)), make([]byte, len(of(1)))
	case allToAll:
		call.In, call.Out = of(len(members)), make([]byte, len(of(len(members))))
	default:
		call.Out = of(1)
	}
	err := tcp.Run(c, call)
	return call.Out, err
}

// TestPrograms runs random collectives of programs, of all ranks and of groups, between those of
// the host.
func TestPrograms(t *testing.T) {
	sizes := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 20}
	if testing.Short() {
		sizes = []int{1, 2, 3, 6}
	}
	for _, ranks := range sizes {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			t.Log("seed", seed)
			onRanks(t, ranks, func(c *tcp.Comm) {
				random := rand.New(rand.NewPCG(seed, 0)) // The same on all ranks.
				for range 30 {
					if err := errors.Join(checkProgram(c, randomOperation(random, ranks)), checkHost(c, random)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		})
	}
}

// checkProgram runs a collective of a program.
func checkProgram(c *tcp.Comm, o operation) error {
	got, err := o.run(c)
	if err != nil {
		return fmt.Errorf("%+v: %w", o, err)
	}
	if !bytes.Equal(got, o.want(c.Rank(), c.Size())) {
		return fmt.Errorf("rank %d: %+v is wrong", c.Rank(), o)
	}
	return nil
}

// checkHost runs a collective of the host, or none.
func checkHost(c *tcp.Comm, random *rand.Rand) error {
	ranks, root, count := c.Size(), random.IntN(c.Size()), pick(random, []int{0, 1, 5, 1000, 40_001})
	value := func(rank, i int) int32 { return int32(element(rank, i)) }
	values := make([]int32, ranks*count)
	for i := range values {
		values[i] = value(c.Rank(), i)
	}
	o := operation{kind: []int{allReduce, broadcast, allGather, reduceScatter, 0, 0}[random.IntN(6)], dtype: int32s, count: count, root: root}
	mine := o.encoded(count, func(i int) int { return element(c.Rank(), i) })
	var got []byte
	var err error
	switch o.kind {
	case allReduce:
		err = tcp.AllReduce(c, values[:count])
		got = o.encoded(count, func(i int) int { return int(values[i]) })
	case broadcast:
		err = c.Broadcast(mine, root)
		got = mine
	case allGather:
		var all [][]byte
		all, err = c.AllGather(mine)
		got = slices.Concat(all...)
	case reduceScatter:
		out := make([]int32, count)
		err = tcp.ReduceScatter(c, values, out)
		got = o.encoded(count, func(i int) int { return int(out[i]) })
	default:
		return nil
	}
	if err == nil && !bytes.Equal(got, o.want(c.Rank(), ranks)) {
		err = fmt.Errorf("rank %d: the result is wrong", c.Rank())
	}
	if err != nil {
		return fmt.Errorf("the host's %+v: %w", o, err)
	}
	return nil
}

// TestProgramsDisagree: if one rank's collective differs in anything, all ranks fail, and none gets
// a wrong result. The collectives are of as many bytes each.
func TestProgramsDisagree(t *testing.T) {
	tests := []struct {
		name      string
		most, odd operation
	}{
		{name: "type", most: operation{kind: allReduce, dtype: float32s, count: 6}, odd: operation{kind: allReduce, dtype: int32s, count: 6}},
		{name: "type of much", most: operation{kind: allReduce, dtype: float32s, count: 60_000}, odd: operation{kind: allReduce, dtype: float64s, count: 30_000}},
		{name: "type of all-gather", most: operation{kind: allGather, dtype: int64s, count: 1}, odd: operation{kind: allGather, dtype: int32s, count: 2}},
		{name: "reduction", most: operation{kind: allReduce, dtype: float32s, count: 6}, odd: operation{kind: allReduce, dtype: float32s, count: 6, reduction: 1}},
		{name: "root", most: operation{kind: broadcast, dtype: float32s, count: 6}, odd: operation{kind: broadcast, dtype: float32s, count: 6, root: 1}},
		{name: "order of groups", most: operation{kind: allGather, dtype: int32s, count: 1, groups: [][]int{{0, 1, 2, 3}}}, odd: operation{kind: allGather, dtype: int32s, count: 1, groups: [][]int{{0, 2, 1, 3}}}},
		{name: "groups", most: operation{kind: allReduce, dtype: int32s, count: 1, groups: [][]int{{0, 1}, {2, 3}}}, odd: operation{kind: allReduce, dtype: int32s, count: 1, groups: [][]int{{0, 2}, {1, 3}}}},
		{name: "size of groups", most: operation{kind: allReduce, dtype: int32s, count: 1, groups: [][]int{{0, 1}, {2, 3}}}, odd: operation{kind: allReduce, dtype: int32s, count: 1, groups: [][]int{{0}, {1}, {2}, {3}}}},
	}
	for _, test := range tests {
		for _, odd := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s on rank %d", test.name, odd), func(t *testing.T) {
				onRanks(t, 4, func(c *tcp.Comm) {
					o := test.most
					if c.Rank() == odd {
						o = test.odd
					}
					_, err := o.run(c)
					if err == nil { // Some algorithms let a rank go before all have come.
						err = c.Barrier()
					}
					if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("rank %d of 4: ", c.Rank())) {
						t.Errorf("rank %d: %v", c.Rank(), err)
					}
				})
			})
		}
	}
}
