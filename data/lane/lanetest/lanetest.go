// Package lanetest tests implementations of data.Stream: whether they can be divided into lanes,
// and resumed, without losing an example.
package lanetest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"gonbatch/data"
	"gonbatch/data/lane"
)

// Divide reads two passes of a stream in several lanes, whose number and blocks depend on the seed,
// as the ranks of a training run do. Each lane is read twice: at once, and in pieces, with a resume
// at random positions. Both must have the same examples in the same order, and the lanes together
// each of these names in the first pass, once.
func Divide(t *testing.T, s data.Stream, seed uint64, names []string, name func(example any) string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 3))
	c := lane.Config{Lanes: 2 * (1 + random.IntN(4)), Seed: seed, Block: random.IntN(6)}
	var got []string
	for number := range c.Lanes {
		whole := read(t, s, c, number, name, func() bool { return false })
		pieces := read(t, s, c, number, name, func() bool { return random.IntN(3) == 0 })
		if !slices.Equal(whole, pieces) {
			t.Fatalf("seed %d, %+v: lane %d in pieces has\n%q, want\n%q", seed, c, number, pieces, whole)
		}
		for _, example := range whole {
			if example[0] == '0' { // Of the first pass.
				got = append(got, example[1:])
			}
		}
	}
	slices.Sort(got)
	if want := slices.Sorted(slices.Values(names)); !slices.Equal(got, want) {
		t.Fatalf("seed %d, %+v: a pass has\n%q, want\n%q", seed, c, got, want)
	}
}

// read returns the examples of a lane in the first two passes, each after the pass. The lane is
// closed, and another one resumes, where stop says so.
func read(t *testing.T, s data.Stream, c lane.Config, number int, name func(example any) string, stop func() bool) (all []string) {
	t.Helper()
	l := lane.New(s, c, lane.Position{Lane: number})
	defer func() { l.Close() }()
	for l.Position().Pass < 2 {
		if stop() {
			l.Close()
			l = lane.New(s, c, l.Position())
		}
		example, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(rune('0'+l.Place().Pass))+name(example))
	}
	return all
}
