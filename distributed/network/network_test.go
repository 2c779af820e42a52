package network

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"gonbatch/distributed/ranktest"
)

// patience is far longer than anything takes on a busy machine.
const patience = time.Minute

// serve listens on this machine with the key, and sends a byte on each connection.
func serve(t *testing.T, k Key) (address string) {
	t.Helper()
	l, err := Listen(t.Context(), true, "0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go l.Serve(k, func(conn net.Conn) {
		_, _ = conn.Write([]byte{7}) // Some callers are gone.
		conn.Close()
	})
	return l.Addr().String()
}

// reach fails the test unless one of the addresses leads to a listener that knows the key.
func reach(t *testing.T, addresses []string, k Key) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := Dial(ctx, addresses, k)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// silent returns an address where a listener never answers.
func silent(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// TestDial: Dial finds the right address among addresses of strangers, of nobody, and of a silent
// listener.
func TestDial(t *testing.T) {
	k := NewKey()
	wanted, stranger := serve(t, k), serve(t, NewKey())
	conn := reach(t, []string{stranger, silent(t), "127.0.0.1:1", wanted}, k)
	if got := conn.RemoteAddr().String(); got != wanted {
		t.Errorf("connected to %s, want %s", got, wanted)
	}
	_, err := Dial(t.Context(), []string{stranger, "127.0.0.1:1"}, k)
	if err == nil || !strings.Contains(err.Error(), stranger) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("without the right address: %v", err)
	}
	if _, err := Dial(t.Context(), []string{wanted}, k.For("something else")); !errors.Is(err, ErrStranger) {
		t.Errorf("a key for another use: %v", err)
	}
	if _, err := Dial(t.Context(), nil, k); err == nil {
		t.Error("without an address there is no error")
	}
}

// TestSilentCallers: silent callers delay nobody.
func TestSilentCallers(t *testing.T) {
	k := NewKey()
	address := serve(t, k)
	for range 20 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	reach(t, []string{address}, k)
}

// TestNoFilesLeft: a listener whose process runs out of file descriptors continues when there are
// some again.
func TestNoFilesLeft(t *testing.T) {
	k := NewKey()
	address := serve(t, k)
	files := ranktest.UseUpFiles(t)
	// One file descriptor for this end of a connection. None is left for the other end.
	files.CloseOne()
	early, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer early.Close()
	time.Sleep(100 * time.Millisecond) // The listener tries, and fails.
	files.CloseAll()
	reach(t, []string{address}, k)
}

func TestAddresses(t *testing.T) {
	l, err := Listen(t.Context(), false, "0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	found, err := l.Addresses()
	if err != nil {
		t.Fatal(err)
	}
	if last := found[len(found)-1]; !strings.HasSuffix(last, ":"+l.Port()) || !strings.HasPrefix(last, "127.") && !strings.HasPrefix(last, "[::1]") {
		t.Errorf("the loopback is not last: %v", found)
	}
	local, err := Listen(t.Context(), true, "0")
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	if found, err := local.Addresses(); err != nil || len(found) != 1 || !strings.HasPrefix(found[0], "127.0.0.1:") {
		t.Errorf("on this machine: %v, %v", found, err)
	}
}

// TestRoom: a process that may open too few files for its connections learns how many it needs.
func TestRoom(t *testing.T) {
	if err := Room(10); err != nil {
		t.Error(err)
	}
	ranktest.UseUpFiles(t).CloseAll()
	if err := Room(1023); err == nil || !strings.Contains(err.Error(), "1023 connections need") || !strings.Contains(err.Error(), "may have 64") {
		t.Errorf("got %v", err)
	}
}
