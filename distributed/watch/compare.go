package watch

import (
	"fmt"

	"gonbatch/internal/rundir"
)

// comparison holds the ranks' collectives against one another: those of one number must be the
// same.
type comparison struct {
	seen map[uint64][]group
	// newest is the highest number seen, disputed the first on which ranks disagree; 0 if there is
	// none.
	newest, disputed uint64
}

// group are the ranks that say the same of a collective's number.
type group struct {
	Collective
	// first is the lowest of the ranks, on host at step.
	first int
	host  string
	step  int64
	ranks int
}

// compared is how many collectives back a rank may lag and still be compared.
const compared = 4096

func newComparison() *comparison { return &comparison{seen: map[uint64][]group{}} }

// add compares what a rank has entered since it last said so.
func (c *comparison) add(p *peer) {
	for _, entered := range p.state.Recent {
		mine := group{Collective: entered, first: p.rank, host: p.host, step: p.state.Step, ranks: 1}
		c.seen[entered.Number] = join(c.seen[entered.Number], mine)
		if len(c.seen[entered.Number]) > 1 && (c.disputed == 0 || entered.Number < c.disputed) {
			c.disputed = entered.Number
		}
		c.newest = max(c.newest, entered.Number)
	}
	c.forget()
}

// join puts a rank's word with those who say the same.
func join(groups []group, mine group) []group {
	for i, g := range groups {
		if g.Collective != mine.Collective {
			continue
		}
		mine.ranks += g.ranks
		if g.first < mine.first {
			mine.first, mine.host, mine.step = g.first, g.host, g.step
		}
		groups[i] = mine
		return groups
	}
	return append(groups, mine)
}

// forget drops what is long past.
func (c *comparison) forget() {
	if len(c.seen) <= 2*compared {
		return
	}
	for number := range c.seen {
		if number+compared < c.newest && number != c.disputed {
			delete(c.seen, number)
		}
	}
}

// heard is how many ranks have spoken on the disputed collective.
func (c *comparison) heard() int {
	n := 0
	for _, g := range c.seen[c.disputed] {
		n += g.ranks
	}
	return n
}

// verdict names the smallest group that disagrees; of two that are as small, the one without the
// lowest rank. nil if all agree.
func (c *comparison) verdict() *verdict {
	if c.disputed == 0 {
		return nil
	}
	groups := c.seen[c.disputed]
	fewest, most := groups[0], groups[0]
	for _, g := range groups[1:] {
		if g.ranks < fewest.ranks || g.ranks == fewest.ranks && g.first > fewest.first {
			fewest = g
		}
		if g.ranks > most.ranks || g.ranks == most.ranks && g.first < most.first {
			most = g
		}
	}
	return &verdict{Stacks: true, Failure: rundir.Failure{Kind: rundir.Mismatch, Rank: fewest.first, Host: fewest.host, Step: fewest.step,
		Error: fmt.Sprintf("the ranks disagree: %s calls %v where %s calls %v: all ranks must call the same collectives, of the same sizes, in the same order",
			fewest.name(), fewest.Collective, most.name(), most.Collective)}}
}

func (g group) name() string { return (&peer{rank: g.first, host: g.host}).name() }
