package mpi_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gonbatch/distributed/mpi"
	"gonbatch/distributed/ranktest"
)

// The kinds of collectives and the places in a form: see Transport in package pjrt.
const (
	allReduce     = 1
	broadcast     = 2
	allGather     = 3
	reduceScatter = 5
	allToAll      = 6
)

// drawn is a collective of int32 among 4 ranks, as a program calls it.
type drawn struct {
	kind, count     int
	reduction, root int64
	groups          []int64 // The groups and places of the ranks.
}

var groupings = [][]int64{nil, {0, 0, 0, 1, 1, 0, 1, 1}, {0, 0, 1, 0, 0, 1, 1, 1}}

func draw(random *rand.Rand) drawn {
	d := drawn{kind: []int{allReduce, broadcast, allGather, reduceScatter, allToAll}[random.IntN(5)], count: 1 + random.IntN(5), groups: groupings[random.IntN(3)]}
	switch d.kind {
	case allReduce, reduceScatter:
		d.reduction = int64(random.IntN(3))
	case broadcast:
		d.root = int64(random.IntN(2))
	}
	return d
}

// text describes the collective as an error does, without its groups.
func (d drawn) text() string {
	name := map[int]string{allReduce: "all-reduce", broadcast: "broadcast", allGather: "all-gather", reduceScatter: "reduce-scatter", allToAll: "all-to-all"}[d.kind]
	text := fmt.Sprintf("%s%s of %d int32", name, []string{"", " (minimum)", " (maximum)"}[d.reduction], d.count)
	if d.root > 0 {
		text += fmt.Sprintf(" from %d", d.root)
	}
	return text
}

// call runs the collective with the number of this rank in all elements, and returns the first
// element of the result.
func (d drawn) call(rank int) (int32, error) {
	detail := d.reduction | d.root<<2
	form := []int64{detail, d.reduction, d.root, 0}
	if d.groups != nil {
		form = append([]int64{detail | (1+d.groups[2])<<31, d.reduction, d.root, 4}, d.groups...)
	}
	in, out := make([]int32, 20), make([]int32, 20)
	for i := range in {
		in[i], out[i] = int32(rank), int32(rank)
	}
	err := mpi.InProgram(d.kind, in, out, d.count, form)
	return out[0], err
}

// want returns the first element of the result.
func (d drawn) want(rank int) int32 {
	members := []int32{0, 1, 2, 3}
	for i := range d.groups {
		if i == 0 {
			members = nil
		}
		if i%2 == 0 && d.groups[i] == d.groups[2*rank] {
			members = append(members, int32(i/2))
		}
	}
	switch {
	case d.kind == broadcast:
		return members[d.root]
	case d.kind == allGather || d.kind == allToAll || d.reduction == 1:
		return members[0]
	case d.reduction == 2:
		return members[len(members)-1]
	}
	var sum int32
	for _, m := range members {
		sum += m
	}
	return sum
}

// TestRandomMismatches: if a rank calls another collective than the others, all ranks fail before
// data moves, with an error that names both, and may go on. The ranks may begin to disagree at any
// place of a program, of which they have called a part before.
func TestRandomMismatches(t *testing.T) {
	ranktest.Run(t, 4, func(t *testing.T) {
		comm := initRank(t)
		random := rand.New(rand.NewPCG(7, 12)) // The same on all ranks.
		for round := range 150 {
			if _, err := comm.AllGather(make([]byte, 100+round)); err != nil { // No round follows the same as another.
				t.Fatal(err)
			}
			for range random.IntN(3) {
				d := draw(random)
				if got, err := d.call(comm.Rank()); err != nil || got != d.want(comm.Rank()) {
					t.Errorf("round %d: %s of %v: got %d, %v, want %d", round, d.text(), d.groups, got, err, d.want(comm.Rank()))
				}
			}
			checkMismatch(t, comm, random)
		}
	})
}

func checkMismatch(t *testing.T, comm *mpi.Comm, random *rand.Rand) {
	t.Helper()
	most, other, odd := draw(random), draw(random), random.IntN(4)
	if fmt.Sprint(most) == fmt.Sprint(other) {
		return
	}
	mine, theirs, rank := most, other, odd
	if comm.Rank() == odd {
		mine, theirs, rank = other, most, map[bool]int{true: 1}[odd == 0]
	}
	_, err := mine.call(comm.Rank())
	if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("rank %d of 4: rank %d calls %s", comm.Rank(), rank, theirs.text())) ||
		!strings.Contains(err.Error(), "here, and this rank "+mine.text()) {
		t.Errorf("rank %d: got %v, want that rank %d calls %s and this rank %s", comm.Rank(), err, rank, theirs.text(), mine.text())
	}
}

// TestManyCollectives: the ranks still agree after more different collectives than they remember.
func TestManyCollectives(t *testing.T) {
	ranktest.RunWith(t, []ranktest.Launcher{ranktest.MPICH}, 2, func(t *testing.T) {
		comm := initRank(t)
		data, random := make([]byte, 1000), rand.New(rand.NewPCG(1, 2))
		for range 70_000 {
			if err := comm.Broadcast(data[:1+random.IntN(1000)], random.IntN(2)); err != nil {
				t.Fatal(err)
			}
		}
		if err := comm.Broadcast(data[:500+comm.Rank()], 0); err == nil || !strings.Contains(err.Error(), "calls broadcast of 50") {
			t.Errorf("got %v", err)
		}
	})
}
