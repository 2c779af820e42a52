package watch

import (
	"net"
	"testing"
	"time"
)

// TestLastMessage: a goodbye that has arrived is received, even if a message to the end that has
// said it and is gone fails first. It would be a failure without it.
func TestLastMessage(t *testing.T) {
	for range 50 {
		mine, theirs := connected(t)
		if err := theirs.send(order{Bye: true}); err != nil {
			t.Fatal(err)
		}
		theirs.close() // It has not read the first message, so this is a reset.
		for began := time.Now(); mine.send(report{State: &State{}}) == nil; {
			if time.Since(began) > 10*time.Second {
				t.Fatal("sending doesn't fail")
			}
		}
		var o order
		if err := mine.receive(&o); err != nil || !o.Bye {
			t.Fatalf("received %+v, %v, want the goodbye", o, err)
		}
		if err := mine.receive(&o); err == nil {
			t.Fatal("the connection hasn't ended")
		}
	}
}

// connected returns the ends of a connection over TCP. The first has sent a message that the other
// has not read.
func connected(t *testing.T) (mine, theirs *link) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs = newLink(conn), newLink(other)
	if err := mine.send(report{State: &State{}}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Millisecond)
	return mine, theirs
}
