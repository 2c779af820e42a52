package watch

import (
	"net"
	"time"
)

// helloTime is how long a rank that has proved to be one may take to say which.
const helloTime = 15 * time.Second

// serve is for one connection.
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
			l.abort() // An orderly end would be that of this process.
			return
		}
		h.hear(who.Rank, r)
	}
}

// join takes a rank's connection, in place of one that broke. A rank that comes when all is over
// hears that.
func (h *hub) join(who hello, l *link) {
	h.mu.Lock()
	p := h.peers[who.Rank]
	p.host, p.process, p.heard = who.Host, who.Process, time.Now()
	p.lost, p.gone = time.Time{}, time.Time{}
	former, told := h.links[who.Rank], h.told
	h.links[who.Rank] = l
	h.mu.Unlock()
	if former != nil {
		former.abort()
	}
	if told != nil {
		_ = l.send(*told)
	}
}

// maxCrash bounds a panic's text.
const maxCrash = 1 << 20

// hearCrash takes a panic's text as it comes: the connection ends with the process.
func (h *hub) hearCrash(rank int, l *link) {
	over := make(chan struct{})
	defer close(over)
	h.mu.Lock()
	h.crashes[rank] = over
	h.mu.Unlock()
	part := make([]byte, 64<<10)
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

// crashDelay is how much later than the loss of its process a panic's text may come.
const crashDelay = 100 * time.Millisecond

// lose notes that a rank's connection broke: forever, if its process has ended.
func (h *hub) lose(rank int, l *link, ended bool) {
	gone := time.Now()
	h.mu.Lock()
	if h.links[rank] != l {
		h.mu.Unlock()
		return // The rank has another one already.
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
