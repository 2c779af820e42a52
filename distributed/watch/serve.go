package watch

import (
	"net"
	"time"
)

// helloTime is how long a connection that knows the key may take to name its rank.
const helloTime = 15 * time.Second

// serve handles one connection.
func (h *hub) serve(conn net.Conn) {
	defer conn.Close()
	l := newLink(conn)
	var who hello
	conn.SetReadDeadline(time.Now().Add(helloTime))
	if tune(conn) != nil || l.receive(&who) != nil || who.Rank < 0 || who.Rank >= len(h.peers) {
		return
	}
	conn.SetReadDeadline(time.Time{})
	if who.Crash {
		h.hearCrash(who.Rank, l)
		return
	}
	h.join(who, l)
	for {
		var r report
		if err := l.receive(&r); err != nil {
			h.lose(who.Rank, l, l.finished(err))
			l.abort() // An orderly close would mean that this process has ended.
			return
		}
		h.hear(who.Rank, r)
	}
}

// join records a rank's connection, which may replace a broken one. A rank that connects after the
// last order gets it before it counts as reachable.
func (h *hub) join(who hello, l *link) {
	h.mu.Lock()
	p := h.peers[who.Rank]
	p.host, p.process, p.heard = who.Host, who.Process, time.Now()
	former, told := h.links[who.Rank], h.told
	h.links[who.Rank] = l
	h.mu.Unlock()
	if former != nil {
		former.abort()
	}
	if told != nil {
		_ = l.send(*told)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.links[who.Rank] == l {
		p.lost, p.gone = time.Time{}, time.Time{}
	}
}

// maxCrash limits a panic's text.
const maxCrash = 1 << 20

// hearCrash reads a panic's text as it arrives. The connection ends with the process.
func (h *hub) hearCrash(rank int, l *link) {
	over := make(chan struct{})
	defer close(over)
	h.mu.Lock()
	h.crashes[rank] = over
	h.mu.Unlock()
	part := make([]byte, 4<<10) // Small, because each rank needs its own.
	for {
		n, err := l.in.Read(part)
		h.mu.Lock()
		if p := h.peers[rank]; len(p.crash) < maxCrash {
			p.crash += string(part[:n])
		}
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// crashDelay is how long a panic's text may arrive after the end of its process.
const crashDelay = 100 * time.Millisecond

// lose records that a rank's connection broke: forever, if its process has ended.
func (h *hub) lose(rank int, l *link, ended bool) {
	gone := time.Now()
	h.mu.Lock()
	if h.links[rank] != l {
		h.mu.Unlock()
		return // The rank has reconnected already.
	}
	delete(h.links, rank)
	crash := h.crashes[rank]
	h.mu.Unlock()
	if crash != nil && ended {
		select {
		case <-crash:
		case <-time.After(crashDelay):
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.peers[rank]
	switch {
	case p.bye || h.links[rank] != nil:
	case ended:
		p.gone = gone
		notify(h.kicked)
	default:
		p.lost = gone
	}
}
