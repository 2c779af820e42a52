package watch

import (
	"fmt"

	"gonbatch/rundir"
)

// comparison holds the ranks' collectives against one another: those of one number must be the same.
type comparison struct {
	seen map[uint64]entry
	// newest is the highest number seen.
	newest uint64
}

// entry is a collective and the first rank that entered it.
type entry struct {
	Collective
	rank int
}

// compared is how many collectives back a rank may lag and still be compared.
const compared = 4096

func newComparison() *comparison { return &comparison{seen: map[uint64]entry{}} }

// add compares what a rank entered. It returns the first disagreement, or nil.
func (c *comparison) add(p *peer, name func(rank int) string) *verdict {
	for _, mine := range p.state.Recent {
		other, ok := c.seen[mine.Number]
		if !ok {
			c.remember(entry{mine, p.rank})
			continue
		}
		if other.Collective != mine {
			return &verdict{Stacks: true, Failure: rundir.Failure{Kind: rundir.Mismatch, Rank: p.rank, Host: p.host, Step: p.state.Step,
				Error: fmt.Sprintf("the ranks disagree: %s calls %v where %s calls %v: all ranks must call the same collectives, of the same sizes, in the same order",
					p.name(), mine, name(other.rank), other.Collective)}}
		}
	}
	return nil
}

func (c *comparison) remember(e entry) {
	c.seen[e.Number] = e
	c.newest = max(c.newest, e.Number)
	if len(c.seen) <= 2*compared {
		return
	}
	for number := range c.seen {
		if number+compared < c.newest {
			delete(c.seen, number)
		}
	}
}
