package lane_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonbatch/data/lane"
	"gonbatch/internal/tier"
)

// varied is a stream whose parts have other lengths in each pass: those of a row after the other,
// again and again or, if it is finite, none after the last row.
type varied struct {
	stream // Of the first pass.
	rows   []stream
	finite bool
}

func (v varied) row(pass int) stream {
	if v.finite && pass >= len(v.rows) {
		return make(stream, v.Parts())
	}
	return v.rows[pass%len(v.rows)]
}

func (v varied) Read(part, pass, skip int) iter.Seq2[any, error] {
	return v.row(pass).Read(part, pass, skip)
}

// empty returns the first pass without any example, and whether there is one.
func (v varied) empty() (pass int, ok bool) {
	for pass := range len(v.rows) + 1 {
		if slices.Max(v.row(pass)) == 0 {
			return pass, true
		}
	}
	return 0, false
}

// tiny returns a stream with a few parts, most of them empty, and the settings of its lanes.
func tiny(r *rand.Rand) (varied, lane.Config) {
	v := varied{finite: r.IntN(4) == 0}
	parts, longest := 1+r.IntN(5), 1+r.IntN(4)
	for range 1 + r.IntN(3) {
		row := make(stream, parts)
		for i := range row {
			row[i] = max(0, r.IntN(3*longest)-2*longest+1)
		}
		if r.IntN(5) > 0 {
			row[r.IntN(parts)] = 1 + r.IntN(longest)
		}
		v.rows = append(v.rows, row)
	}
	v.stream = v.rows[0]
	c := lane.Config{Lanes: 1 + r.IntN(6), Seed: r.Uint64()}
	if r.IntN(3) > 0 {
		c.Block = 1 + r.IntN(7)
	}
	return v, c
}

// taken returns the examples of a lane up to its error, or until the next block begins at a pass or
// later. The lane resumes at random positions.
func taken(r *rand.Rand, s varied, c lane.Config, number, pass int) (all []example, err error) {
	l := lane.New(s, c, lane.Position{Lane: number})
	defer func() { l.Close() }()
	for l.Position().Pass < pass {
		if r.IntN(4) == 0 {
			l.Close()
			l = lane.New(s, c, l.Position())
		}
		one, err := l.Next()
		if err != nil {
			return all, err
		}
		all = append(all, one.(example))
	}
	return all, nil
}

// inOrder reports whether a lane's blocks follow the passes, and the examples of each part.
func inOrder(all []example, block int) bool {
	var newest example // Of the block before.
	numbers := map[[2]int]int{}
	for block := range slices.Chunk(slices.Clone(all), max(1, block)) {
		slices.SortFunc(block, func(a, b example) int { return cmp.Or(a.pass-b.pass, a.part-b.part, a.number-b.number) })
		for _, e := range block {
			at := [2]int{e.pass, e.part}
			if e.pass < newest.pass || e.number < numbers[at] {
				return false
			}
			numbers[at] = e.number + 1
		}
		newest = block[len(block)-1]
	}
	return true
}

// missing returns what is wrong with the examples of all lanes in a pass, which must be those of
// the stream, each once.
func missing(s varied, pass int, all []example) (wrong []string) {
	counts := map[example]int{}
	for _, e := range all {
		counts[e]++
	}
	for part, n := range s.row(pass) {
		for number := range n {
			if e := (example{part, number, pass}); counts[e] != 1 {
				wrong = append(wrong, fmt.Sprintf("%+v is there %d times", e, counts[e]))
			}
		}
	}
	return wrong
}

// TestFewParts: with a few parts, most of them empty, and lanes that are stopped at any time, the
// lanes together have each example of a pass once. They have all examples before the first pass
// that has none, and then all of them return the same error.
func TestFewParts(t *testing.T) {
	const passes = 5
	for seed := range uint64(tier.Tries(20_000, 5_000)) {
		r := rand.New(rand.NewPCG(seed, 3))
		s, c := tiny(r)
		end, ends := s.empty()
		message := fmt.Sprintf("seed %d, %v, finite %v, %+v", seed, s.rows, s.finite, c)
		var all []example
		for number := range c.Lanes {
			mine, err := taken(r, s, c, number, passes)
			if ends != (err != nil) || ends && !strings.Contains(err.Error(), ended(end)) {
				t.Fatalf("%s: lane %d: got %v, want an error: %v, %s", message, number, err, ends, ended(end))
			}
			if !inOrder(mine, c.Block) {
				t.Fatalf("%s: lane %d: the order is %v", message, number, mine)
			}
			all = append(all, mine...)
		}
		if !ends {
			end = passes
		}
		for pass := range end {
			if wrong := missing(s, pass, all); wrong != nil {
				t.Fatalf("%s: %s", message, strings.Join(wrong, ", "))
			}
		}
	}
}

// ended returns the error of a stream without examples in a pass.
func ended(pass int) string {
	if pass == 0 {
		return "the stream has no examples: Read yields none in its"
	}
	return fmt.Sprintf("in pass %d, counted from 0", pass)
}

// TestSameInAnyPieces: a lane that resumes often has the examples, in order, of one that doesn't.
func TestSameInAnyPieces(t *testing.T) {
	for seed := range uint64(20_000) {
		s, c := tiny(rand.New(rand.NewPCG(seed, 4)))
		number := int(seed) % c.Lanes
		got, failed := taken(rand.New(rand.NewPCG(seed, 5)), s, c, number, 5)
		l := lane.New(s, c, lane.Position{Lane: number})
		for i, want := range got {
			if one, err := l.Next(); err != nil || one != want {
				t.Fatalf("seed %d, %v, %+v: example %d is %v, %v, in pieces %v", seed, s.rows, c, i, one, err, want)
			}
		}
		if _, err := l.Next(); failed != nil && fmt.Sprint(err) != failed.Error() {
			t.Fatalf("seed %d: the end is %v, in pieces %v", seed, err, failed)
		}
		l.Close()
	}
}

// TestEachLane: a lane that has an empty part in the first pass has the examples of the others
// later, however few parts have any.
func TestEachLane(t *testing.T) {
	for _, c := range []lane.Config{{Lanes: 4}, {Lanes: 4, Block: 1}, {Lanes: 1}, {Lanes: 40}, {Lanes: 40, Block: 3}} {
		s := make(stream, 20)
		s[13] = 1
		for number := range c.Lanes {
			all := take(t, lane.New(s, c, lane.Position{Lane: number}), 10)
			if all[9].part != 13 {
				t.Errorf("%+v, lane %d: %v", c, number, all)
			}
		}
	}
}
