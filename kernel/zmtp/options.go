package zmtp

import (
	"cmp"
	"time"
)

// Options bound what the clients of a socket may cost. The zero value of each field stands for its
// default.
type Options struct {
	// Handshake is how long a new connection may take to say who it is: 10 s.
	Handshake time.Duration
	// Pending is how many connections may be within their handshake: 64. One more ends the oldest
	// of them.
	Pending int
	// Connections is how many there may be after the handshake: 256. More are refused.
	Connections int
	// Message is how large a message of a client may be, in bytes: 256 MiB.
	Message int64
	// Part is how long a client may pause within a message: 30 s.
	Part time.Duration
	// Queue is how much may wait for a client before it has to be waited for, in bytes: 32 MiB. A
	// client that is sent as much again without that is disconnected.
	Queue int64
	// Stall is how long a client whose queue is full may read nothing until it is disconnected: 30
	// s. On a busy machine a client that is well reads nothing for seconds.
	Stall time.Duration
	// Flush is how long Close waits for clients to read what was sent: 1 s.
	Flush time.Duration
	// Log is told why a client was refused or disconnected. It may be called from several
	// goroutines at once. Unset, nobody is.
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
