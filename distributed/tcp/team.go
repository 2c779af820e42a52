package tcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"gonbatch/internal/plural"
)

// link is a connection to another rank.
type link struct {
	rank int
	conn net.Conn
}

// team is the ranks that a collective is over: all of them or a group. Its members are in a ring.
type team struct {
	comm  *Comm
	ranks []int
	place int // This rank's place among them.
	// places are each rank's group and place in it, and groups is their checksum. Of all ranks,
	// there are none.
	places   []int64
	groups   uint32
	from, to link // The previous and the next member.
	// linked means that this rank has connections to all members, treed that it has those of a
	// tree.
	linked, treed bool
}

// worldTeam is the team of all ranks.
func worldTeam(c *Comm) *team {
	t := &team{comm: c, place: c.rank}
	for rank := range c.size {
		t.ranks = append(t.ranks, rank)
	}
	return t
}

// teamOf returns the team of this rank, where places has each rank's group and place in it. A group
// that is used for the first time needs connections, so this is collective over all ranks.
func (c *Comm) teamOf(places []int64) (*team, error) {
	if len(places) != 2*c.size {
		return nil, fmt.Errorf("the groups have %s, and there are %d", plural.Of(len(places)/2, "rank"), c.size)
	}
	for _, t := range c.teams {
		if slices.Equal(t.places, places) {
			return t, nil
		}
	}
	t := &team{comm: c, place: int(places[2*c.rank+1]), places: slices.Clone(places), groups: checksum(fmt.Sprint(places))}
	for rank := range c.size {
		if places[2*rank] == places[2*c.rank] {
			t.ranks = append(t.ranks, 0)
		}
	}
	for rank := range c.size {
		if places[2*rank] == places[2*c.rank] {
			t.ranks[places[2*rank+1]] = rank
		}
	}
	if err := t.linkAll(); err != nil {
		return nil, err
	}
	t.from, t.to = t.member(-1), t.member(1)
	c.teams = append(c.teams, t)
	return t, nil
}

// size returns the number of members.
func (t *team) size() int { return len(t.ranks) }

// at returns the place at an offset from this rank's own.
func (t *team) at(offset int) int { return ((t.place+offset)%t.size() + t.size()) % t.size() }

// member returns the direct connection to the member at an offset from this rank.
func (t *team) member(offset int) link { return t.linkTo(t.at(offset)) }

// linkTo returns the direct connection to the member at a place.
func (t *team) linkTo(place int) link {
	rank := t.ranks[place]
	return link{rank, t.comm.direct.conns[rank]}
}

// linkAll connects this rank to all members.
func (t *team) linkAll() error {
	if t.linked {
		return nil
	}
	t.linked = true
	return t.comm.connect(t.ranks, t.groups)
}

// atOnce is how many bytes a connection always takes without waiting for its reader, if everything
// sent before has been read. If each rank first sends so few and then receives, they can't all wait
// for one another: a rank waits only for one that is behind it.
const atOnce = 4 << 10

// exchange sends to a rank while it receives from another.
func exchange(to, from link, out, in []byte) error {
	if len(out) <= atOnce {
		if err := send(to, out); err != nil {
			return err
		}
		return receive(from, in)
	}
	sent := make(chan error, 1)
	go func() { sent <- send(to, out) }()
	err := receive(from, in)
	if err != nil {
		to.conn.Close() // The other rank may not be reading. It will fail anyway.
	}
	return errors.Join(err, <-sent)
}

// receive fills the data from a rank.
func receive(from link, data []byte) error {
	if _, err := io.ReadFull(from.conn, data); err != nil {
		return fmt.Errorf("receive from rank %d: %w", from.rank, err)
	}
	return nil
}

// send sends the data to a rank. A rank that waits for nothing may have left.
func send(to link, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if _, err := to.conn.Write(data); err != nil {
		return fmt.Errorf("send to rank %d: %w", to.rank, err)
	}
	return nil
}

// pass sends to the next member while it receives from the previous one.
func (t *team) pass(send, receive []byte) error { return exchange(t.to, t.from, send, receive) }

// chunk divides the data into one chunk for each member, and returns the one at an offset from this
// rank's own.
func (t *team) chunk(offset, n, size int, data []byte) []byte {
	i := t.at(offset)
	return data[i*n/t.size()*size : (i+1)*n/t.size()*size]
}

// part returns the part of the member at an offset from this rank, of parts of the same length.
func (t *team) part(offset int, data []byte) []byte {
	i, length := t.at(offset), len(data)/t.size()
	return data[i*length : (i+1)*length]
}
