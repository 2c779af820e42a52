package tcp

import (
	"errors"
	"math/bits"
	"slices"
)

// doubling reduces small data by recursive doubling (Thakur, Rabenseifner and Gropp, Optimization
// of collective communication operations in MPICH, 2005, https://doi.org/10.1177/1094342005051521):
// in each round, pairs of members exchange everything that they know. So it takes as many rounds as
// the number of members can be halved. If that number is not a power of two, each member beyond it
// gives its data to one below first, and gets the result at the end.
//
// All members get the same bits: both of a pair combine the same two values in the same order.
func (t *team) doubling(i intent, reduce reduction, data []byte) error {
	if err := t.linkTree(); err != nil {
		return err
	}
	even, place := powerOfTwo(t.size()), t.place
	m := message{header: t.header(i, len(data)), data: data, theirs: t.comm.buffer(len(data))}
	if place >= even {
		partner := t.linkTo(place - even)
		if err := m.send(partner); err != nil {
			return err
		}
		return m.receiveInto(partner, func(theirs []byte) { copy(data, theirs) })
	}
	if place+even < t.size() {
		if err := m.receiveInto(t.linkTo(place+even), func(theirs []byte) { reduce(data, theirs) }); err != nil {
			return err
		}
	}
	for distance := 1; distance < even; distance *= 2 {
		other := place ^ distance
		if err := m.exchange(t.linkTo(other), func(theirs []byte) { combine(reduce, data, theirs, other < place) }); err != nil {
			return err
		}
	}
	if place+even < t.size() {
		return m.send(t.linkTo(place + even))
	}
	return nil
}

// combine reduces both into data, in the order of the members.
func combine(reduce reduction, data, theirs []byte, theyAreFirst bool) {
	if !theyAreFirst {
		reduce(data, theirs)
		return
	}
	reduce(theirs, data)
	copy(data, theirs)
}

// powerOfTwo returns the largest one that is at most n.
func powerOfTwo(n int) int { return 1 << (bits.Len(uint(n)) - 1) }

// LinkTree makes the connections for recursive doubling, which AllReduce then uses for little data
// of any number of ranks: so many small sums need not take the chain. It is collective.
func (c *Comm) LinkTree() error {
	return c.do("connect as a tree", func() error {
		if c.size == 1 {
			return nil
		}
		return c.world.linkTree()
	})
}

// linkTree connects this rank to its partners.
func (t *team) linkTree() error {
	if t.treed || t.linked {
		return nil
	}
	t.treed = true
	even, partners := powerOfTwo(t.size()), []int(nil)
	for distance := 1; distance < even && t.place < even; distance *= 2 {
		partners = append(partners, t.ranks[t.place^distance])
	}
	if t.place >= even {
		partners = append(partners, t.ranks[t.place-even])
	}
	if t.place+even < t.size() {
		partners = append(partners, t.ranks[t.place+even])
	}
	return t.comm.connect(partners, t.groups)
}

// message is a rank's data in a small collective, with room for another rank's header and data.
type message struct {
	header, data, theirs []byte
}

func (m message) bytes() []byte { return slices.Concat(m.header, m.data) }

func (m message) send(to link) error { return send(to, m.bytes()) }

// receiveInto receives another rank's message and uses its data.
func (m message) receiveInto(from link, use func(theirs []byte)) error {
	got := make([]byte, headerSize)
	if err := receive(from, got); err != nil {
		return err
	}
	if err := checkHeader(m.header, got, from.rank); err != nil {
		return err
	}
	theirs := m.theirs[:len(m.data)]
	if err := receive(from, theirs); err != nil {
		return err
	}
	use(theirs)
	return nil
}

// exchange sends the message to a rank and uses the data of that rank's.
func (m message) exchange(with link, use func(theirs []byte)) error {
	bytes := m.bytes()
	if len(bytes) <= atOnce {
		if err := send(with, bytes); err != nil {
			return err
		}
		return m.receiveInto(with, use)
	}
	sent := make(chan error, 1)
	go func() { sent <- send(with, bytes) }()
	err := m.receiveInto(with, use) // The message was copied.
	if err != nil {
		with.conn.Close() // The other rank may not be reading. It will fail anyway.
	}
	return errors.Join(err, <-sent)
}
