package zmtp

import (
	"cmp"
	"time"
)

// Options limit what the clients of a socket may cost. A field that is zero gets its default.
type Options struct {
	// Handshake is how long a new connection may take to introduce itself. Default: 10 s.
	Handshake time.Duration
	// Pending is how many connections may be in their handshake. One more closes the oldest of
	// them. Default: 64.
	Pending int
	// Connections is how many connections there may be after the handshake. More are refused.
	// Default: 256.
	Connections int
	// Message is the maximum size of a client's message, in bytes. Default: 256 MiB.
	Message int64
	// Part is how long a client may pause within a message. Default: 30 s.
	Part time.Duration
	// Queue is how many bytes may wait for a client before the sender has to wait. A client that is
	// sent as much again by a sender that doesn't wait is disconnected. Default: 32 MiB.
	Queue int64
	// Stall is how long a client whose queue is full may read nothing before it is disconnected. On
	// a busy machine, a healthy client may read nothing for seconds. Default: 30 s.
	Stall time.Duration
	// Flush is how long Close waits for clients to read what was sent. Default: 1 s.
	Flush time.Duration
	// Log is called with the reason when a client is refused or disconnected. It may be called
	// concurrently, and may be nil.
	Log func(error)
}

func (o Options) withDefaults() Options {
	o.Handshake = cmp.Or(o.Handshake, 10*time.Second)
	o.Pending = cmp.Or(o.Pending, 64)
	o.Connections = cmp.Or(o.Connections, 256)
	o.Message = cmp.Or(o.Message, 256<<20)
	o.Part = cmp.Or(o.Part, 30*time.Second)
	o.Queue = cmp.Or(o.Queue, 32<<20)
	o.Stall = cmp.Or(o.Stall, 30*time.Second)
	o.Flush = cmp.Or(o.Flush, time.Second)
	if o.Log == nil {
		o.Log = func(error) {}
	}
	return o
}
