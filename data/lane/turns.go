package lane

import "gonbatch/data/shuffle"

// turns are the parts of a lane in a pass, in order, and the examples that it uses there.
type turns struct {
	parts []int
	// Lanes that share a part use its examples in turn: this lane those with this remainder.
	sharing, remainder int
}

// has reports whether an example of a part is the lane's.
func (t *turns) has(example int) bool { return example%t.sharing == t.remainder }

// turns returns the parts of a lane in a pass over a stream of n parts. Each part is some lane's.
// Over the passes, each lane has each part, so a lane whose parts are empty has others later.
func (c Config) turns(lane, n, pass int) *turns {
	if n < c.Lanes {
		place := c.place(lane, pass)
		part := place % n
		return &turns{parts: []int{part}, sharing: (c.Lanes-1-part)/n + 1, remainder: place / n}
	}
	place, order := lane, shuffle.Sorted()
	if c.Block > 0 {
		order = shuffle.Random(n, c.Seed, partStream+uint64(pass))
	} else {
		place = c.place(lane, pass)
	}
	t := &turns{sharing: 1}
	for i := place; i < n; i += c.Lanes {
		t.parts = append(t.parts, order.At(i))
	}
	return t
}

// place returns which lane's parts a lane has: its own in the first pass, then those of a random
// one.
func (c Config) place(lane, pass int) int {
	if pass == 0 {
		return lane
	}
	return shuffle.Random(c.Lanes, c.Seed, placeStream+uint64(pass)).At(lane)
}

// partStream and placeStream make the orders of parts and places differ from that of any block.
const (
	partStream  = 1 << 63
	placeStream = 1 << 62
)
