package network

import (
	"errors"
	"net"
	"testing"
)

// TestHandshake: the handshake succeeds only if both sides know the same key.
func TestHandshake(t *testing.T) {
	ours, theirs := NewKey(), NewKey()
	tests := []struct {
		name      string
		rank, hub Key
		want      error
	}{
		{"the same job", ours, ours, nil},
		{"another job", ours, theirs, ErrStranger},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := pair(t)
			checked := make(chan error, 1)
			go func() { checked <- test.hub.Check(b) }()
			if err := test.rank.Prove(a); !errors.Is(err, test.want) {
				t.Errorf("rank: %v, want %v", err, test.want)
			}
			if err := <-checked; !errors.Is(err, test.want) {
				t.Errorf("hub: %v, want %v", err, test.want)
			}
		})
	}
}

// TestNoEcho: a peer that only echoes what it receives is refused.
func TestNoEcho(t *testing.T) {
	a, b := pair(t)
	go func() {
		buffer := make([]byte, 1024)
		for {
			n, err := b.Read(buffer)
			if err != nil {
				return
			}
			_, _ = b.Write(buffer[:n])
		}
	}()
	if err := NewKey().Check(a); !errors.Is(err, ErrStranger) {
		t.Errorf("an echo: %v", err)
	}
}

// pair returns the two ends of a connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}
