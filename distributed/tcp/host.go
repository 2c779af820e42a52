package tcp

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"gonbatch/distributed/network"
	"gonbatch/internal/plural"
)

// host is the rendezvous server in rank 0. It collects the addresses of all ranks and sends them to
// each.
type host struct {
	config Config
	key    network.Key
	over   chan struct{} // Closed when all ranks have registered, or one is refused.
	ending sync.WaitGroup

	mu      sync.Mutex
	members map[int]*entry
	refused string
	all     []byte // See reply. It is set when it is first needed.
}

// entry is a rank that has registered. Rank 0 itself has no connection.
type entry struct {
	member
	conn net.Conn
}

// gather waits for all ranks and answers them. It returns the answer for rank 0 itself.
func gather(ctx context.Context, c Config, me member) (reply, error) {
	_, port, err := net.SplitHostPort(c.Master)
	if err != nil {
		return reply{}, fmt.Errorf("rank 0's address %q: %w", c.Master, err)
	}
	if err := network.Room(c.Size); err != nil {
		return reply{}, fmt.Errorf("join the ring at %s: %w", c.Master, err)
	}
	listen := network.Listen
	if c.Reserved {
		listen = network.ListenReserved
	}
	l, err := listen(ctx, c.Local, port)
	if err != nil {
		return reply{}, fmt.Errorf("join the ring at %s: %w", c.Master, err)
	}
	defer l.Close()
	h := &host{config: c, key: network.NewKey(), over: make(chan struct{}), members: map[int]*entry{}}
	h.take(&entry{member: me})
	go l.Serve(c.key(), func(conn net.Conn) { h.serve(ctx, conn) })
	select {
	case <-ctx.Done():
		return reply{}, fmt.Errorf("not all ranks connected to %s within %v: %s: %w", c.Master, c.Timeout, h.missing(), ctx.Err())
	case <-h.over:
	}
	h.ending.Wait()
	r := h.answer(0)
	if r.Refused != "" {
		return reply{}, fmt.Errorf("join the ring at %s: %s", c.Master, r.Refused)
	}
	return r, nil
}

// memberTime is how long a rank may take to register, and to read its answer. maxMember limits the
// size of its message.
const (
	memberTime = 15 * time.Second
	maxMember  = 64 << 10
)

// serve handles one rank.
func (h *host) serve(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(memberTime))
	e := &entry{conn: conn}
	if gob.NewDecoder(io.LimitReader(conn, maxMember)).Decode(&e.member) != nil {
		return
	}
	conn.SetDeadline(time.Time{})
	e.prefer(conn.RemoteAddr())
	if !h.take(e) {
		return
	}
	defer h.ending.Done()
	gone := make(chan struct{})
	go func() {
		_, _ = conn.Read(make([]byte, 1)) // The rank sends nothing more, so this returns when the connection ends.
		close(gone)
	}()
	select {
	case <-gone:
		h.drop(e)
	case <-ctx.Done():
	case <-h.over:
		conn.SetDeadline(time.Now().Add(memberTime))
		_ = gob.NewEncoder(conn).Encode(h.answer(e.Rank)) // If the rank has left meanwhile, its neighbours will notice.
	}
}

// take registers a rank, and reports whether it must wait for an answer. It reports false for a
// rank that comes too late.
func (h *host) take(e *entry) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.over:
		return false
	default:
	}
	h.refused = h.check(e.member)
	if h.refused == "" {
		h.members[e.Rank] = e
	}
	if e.conn != nil {
		h.ending.Add(1)
	}
	if h.refused != "" || len(h.members) == h.config.Size {
		close(h.over)
	}
	return true
}

// check returns the reason to refuse a rank, or "". The lock is held.
func (h *host) check(m member) string {
	switch {
	case m.Size != h.config.Size:
		return fmt.Sprintf("rank %d says the world has %s, rank 0 says %d", m.Rank, plural.Of(m.Size, "rank"), h.config.Size)
	case m.Rank < 0 || m.Rank >= h.config.Size:
		return fmt.Sprintf("rank %d of %d", m.Rank, h.config.Size)
	case h.members[m.Rank] != nil:
		return fmt.Sprintf("two processes claim to be rank %d", m.Rank)
	}
	return ""
}

// drop removes a rank that left before all had registered. It may come back.
func (h *host) drop(e *entry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.over:
	default:
		delete(h.members, e.Rank)
	}
}

// answer returns the answer for a rank.
func (h *host) answer(rank int) reply {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused != "" {
		return reply{Refused: h.refused}
	}
	if h.all == nil {
		all := make([][]string, h.config.Size)
		for rank := range all {
			all[rank] = h.members[rank].Addresses
		}
		h.all, _ = json.Marshal(all) // Texts can always be encoded.
	}
	return reply{Next: h.members[(rank+1)%h.config.Size].Addresses, All: h.all, Key: h.key}
}

// missing lists the ranks that have not registered.
func (h *host) missing() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	const shown = 8
	var missing []string
	for rank := range h.config.Size {
		if h.members[rank] == nil {
			missing = append(missing, fmt.Sprint(rank))
		}
	}
	if len(missing) > shown {
		missing = append(missing[:shown], fmt.Sprintf("and %d more", len(missing)-shown))
	}
	return "missing: rank " + strings.Join(missing, ", ")
}
