package trainer

import (
	"iter"

	"gonbatch/data/load"
)

// turns divides the examples of a dataset among ranks, in rounds. In each round, each rank gets a
// batch, in order of rank: a full one, or in the last round an equal part of what is left.
type turns struct {
	examples, ranks, size int
}

// round returns the number of examples in all rounds but the last.
func (t turns) round() int { return min(product(t.ranks, t.size), t.examples) }

func (t turns) rounds() int {
	if t.examples == 0 {
		return 0
	}
	return (t.examples-1)/t.round() + 1
}

// of yields a rank's examples of each round. In the last one, a rank may have none.
func (t turns) of(rank int) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		for round := range t.rounds() {
			begin := round * t.round()
			left := min(t.round(), t.examples-begin)
			part := (left-1)/t.ranks + 1
			from, to := min(rank*part, left), min((rank+1)*part, left)
			for indices := range load.Cut(begin+from, begin+to, part) {
				if !yield(indices) {
					return
				}
			}
		}
	}
}
