package watch

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

// TestHandshake: only who knows the job's key is heard, on both sides.
func TestHandshake(t *testing.T) {
	ours, theirs := newKey(), newKey()
	tests := []struct {
		name      string
		rank, hub key
		want      error
	}{
		{"the same job", ours, ours, nil},
		{"another job", ours, theirs, errStranger},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, b := pair(t)
			checked := make(chan error, 1)
			go func() { checked <- test.hub.check(b) }()
			if err := test.rank.prove(a); !errors.Is(err, test.want) {
				t.Errorf("rank: %v, want %v", err, test.want)
			}
			if err := <-checked; !errors.Is(err, test.want) {
				t.Errorf("hub: %v, want %v", err, test.want)
			}
		})
	}
}

// TestNoEcho: who only repeats what it hears does not get in.
func TestNoEcho(t *testing.T) {
	a, b := pair(t)
	go func() {
		buffer := make([]byte, 1024)
		for {
			n, err := b.Read(buffer)
			if err != nil {
				return
			}
			b.Write(buffer[:n])
		}
	}()
	if err := newKey().check(a); !errors.Is(err, errStranger) {
		t.Errorf("an echo: %v", err)
	}
}

// TestDial finds the way to the hub among addresses of others.
func TestDial(t *testing.T) {
	k := newKey()
	hub, stranger := listen(t, k), listen(t, newKey())
	l, err := dial(t.Context(), []string{stranger, "127.0.0.1:1", hub}, k, hello{Rank: 4})
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if got := l.conn.RemoteAddr().String(); got != hub {
		t.Errorf("connected to %s, want %s", got, hub)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := dial(ctx, []string{stranger, "127.0.0.1:1"}, k, hello{}); err == nil || !strings.Contains(err.Error(), stranger) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("no way to the hub: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	found, err := addresses(l)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if last := found[len(found)-1]; !strings.HasSuffix(last, ":"+port) || !strings.HasPrefix(last, "127.") && !strings.HasPrefix(last, "[::1]") {
		t.Errorf("the loopback is not last: %v", found)
	}
}

// listen answers as a hub with the key does.
func listen(t *testing.T, k key) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go k.check(conn)
		}
	}()
	return l.Addr().String()
}

// pair is the two ends of a connection.
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
