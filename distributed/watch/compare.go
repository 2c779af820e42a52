package watch

import (
	"fmt"

	"gonbatch/internal/rundir"
)

// comparison compares the ranks' collectives: those with the same number must be equal.
type comparison struct {
	seen map[uint64][]group
	// newest is the highest number seen. disputed is the lowest number on which ranks disagree; 0
	// if they agree.
	newest, disputed uint64
}

// group is a set of ranks that report the same collective for a number.
type group struct {
	Collective
	// first is the lowest of these ranks; host and step are its own.
	first int
	host  string
	step  int64
	ranks int
}

// compared is how many collectives a rank may lag behind and still be compared.
const compared = 4096

func newComparison() *comparison { return &comparison{seen: map[uint64][]group{}} }

// add compares the collectives that a rank has newly reported.
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

// join adds a rank to the group that reports the same collective.
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

// forget removes old collectives.
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

// heard returns how many ranks have reported the disputed collective.
func (c *comparison) heard() int {
	n := 0
	for _, g := range c.seen[c.disputed] {
		n += g.ranks
	}
	return n
}

// verdict blames the smallest group that disagrees. If several are equally small, it blames the one
// whose lowest rank is highest. It returns nil if all ranks agree.
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
