package local

import (
	"net"
	"strconv"
	"testing"

	"gonbatch/distributed/network"
)

// TestReservedPort: only a process that asks to share the port can listen on it, again and again.
func TestReservedPort(t *testing.T) {
	p, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	number := strconv.Itoa(p.number)
	if conn, err := net.Dial("tcp", "127.0.0.1:"+number); err == nil {
		conn.Close()
		t.Error("somebody listens on the reserved port")
	}
	for range 2 {
		for _, address := range []string{"127.0.0.1:", "0.0.0.0:", "[::]:", ":"} {
			if l, err := net.Listen("tcp", address+number); err == nil {
				l.Close()
				t.Errorf("another process can listen on %s%s", address, number)
			}
		}
		l, err := network.ListenReserved(t.Context(), true, number)
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				err = conn.Close()
			}
			accepted <- err
		}()
		conn, err := net.Dial("tcp", "127.0.0.1:"+number)
		if err != nil {
			t.Fatal(err)
		}
		if err := <-accepted; err != nil {
			t.Error(err)
		}
		conn.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReservedPortsDiffer: each reservation has its own port.
func TestReservedPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		p, err := reservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		if p.number == 0 || seen[p.number] {
			t.Fatalf("port %d", p.number)
		}
		seen[p.number] = true
	}
}
