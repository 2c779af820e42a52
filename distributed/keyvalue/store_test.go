package keyvalue

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"gonbatch/distributed/network"
	"gonbatch/distributed/ranktest"
)

// long is far longer than anything takes on a busy machine.
const long = 5 * time.Minute

func listen(t *testing.T) *Server {
	t.Helper()
	s, err := Listen(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, rank int, place Place) *Store {
	t.Helper()
	s := Dial(rank, place)
	t.Cleanup(s.Close)
	return s
}

// model is what a store must do: a key has the value of the only Put that was not refused.
type model struct {
	mu     sync.Mutex
	values map[string][]byte
}

func (m *model) put(key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if former, ok := m.values[key]; ok {
		return fmt.Errorf("both %.20q and %.20q were put as %q", former, value, key)
	}
	m.values[key] = value
	return nil
}

// seen is a value that a client got.
type seen struct {
	key   string
	value []byte
}

// someBytes returns a random number of random bytes.
func someBytes(rng *rand.Rand) []byte {
	value := make([]byte, rng.IntN(300)*rng.IntN(300))
	for i := range value {
		value[i] = byte(rng.Uint32())
	}
	return value
}

// act runs random operations, and returns the values that it got.
func act(s *Store, m *model, rng *rand.Rand, keys int) (got []seen, err error) {
	for range 40 {
		key := fmt.Sprintf("key/%d\x00\xff", rng.IntN(keys))
		switch rng.IntN(3) {
		case 0:
			value := someBytes(rng)
			switch err := s.Put(key, value); {
			case err == nil:
				if err := m.put(key, value); err != nil {
					return nil, err
				}
			case !errors.Is(err, ErrExists):
				return nil, err
			}
			found, err := s.TryGet(key) // It has a value now, whoever put it.
			if err != nil {
				return nil, err
			}
			got = append(got, seen{key, found})
		case 1:
			switch found, err := s.TryGet(key); {
			case err == nil:
				got = append(got, seen{key, found})
			case !errors.Is(err, ErrNotFound):
				return nil, err
			}
		case 2:
			switch found, err := s.Get(key, time.Duration(rng.IntN(20))*time.Millisecond); {
			case err == nil:
				got = append(got, seen{key, found})
			case !errors.Is(err, ErrTimeout):
				return nil, err
			}
		}
	}
	return got, nil
}

// compare runs clients of a store at several places, and compares their results with the model.
func compare(t *testing.T, places ...Place) {
	const clients, keys = 24, 60
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	m := &model{values: map[string][]byte{}}
	var group sync.WaitGroup
	all, errs := make([][]seen, clients), make([]error, clients)
	for i := range clients {
		s := dial(t, i, places[i%len(places)])
		group.Go(func() { all[i], errs[i] = act(s, m, rand.New(rand.NewPCG(seed, uint64(i))), keys) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for client, got := range all {
		for _, found := range got {
			if want, ok := m.values[found.key]; !ok || !bytes.Equal(found.value, want) {
				t.Errorf("client %d got %.20q as %q, want %.20q", client, found.value, found.key, want)
			}
		}
	}
}

// TestStore: many clients use the store at once, and all see the same values.
func TestStore(t *testing.T) { compare(t, listen(t).Place()) }

// TestBadNetwork: an operation that is repeated because the answer was lost happens only once.
func TestBadNetwork(t *testing.T) {
	place := listen(t).Place()
	bad := place
	bad.Addresses = []string{badProxy(t, place.Addresses[0])}
	compare(t, place, bad)
}

// badProxy forwards connections to the address, and breaks many of them at random moments.
func badProxy(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go forward(in, address)
		}
	}()
	return l.Addr().String()
}

func forward(in net.Conn, address string) {
	defer in.Close()
	out, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer out.Close()
	go func() { _, _ = io.Copy(out, in) }()
	if rand.IntN(2) == 0 {
		_, _ = io.CopyN(in, out, rand.Int64N(120)) // The handshake has 64 bytes, so this is some of the answer, or none.
		return
	}
	_, _ = io.Copy(in, out)
}

// TestGetWaits: several clients wait for one key at once, and all get it.
func TestGetWaits(t *testing.T) {
	place := listen(t).Place()
	const n = 50
	values := make(chan string, n)
	for i := range n {
		s := dial(t, i, place)
		go func() {
			value, err := s.Get("late", long)
			values <- fmt.Sprintf("%s %v", value, err)
		}()
	}
	if value, err := dial(t, 0, place).TryGet("late"); !errors.Is(err, ErrNotFound) {
		t.Errorf("before it was put: %q, %v", value, err)
	}
	if err := dial(t, 0, place).Put("late", []byte("it is here")); err != nil {
		t.Fatal(err)
	}
	for range n {
		if got := <-values; got != "it is here <nil>" {
			t.Error(got)
		}
	}
}

// TestErrors: each error names the rank, the key and the cause.
func TestErrors(t *testing.T) {
	place := listen(t).Place()
	if err := dial(t, 0, place).Put("taken", nil); err != nil {
		t.Fatal(err)
	}
	stranger := Place{place.Addresses, network.NewKey()}
	impatient := func(rank int, place Place) *Store {
		s := dial(t, rank, place)
		s.patience = 200 * time.Millisecond
		return s
	}
	closed := dial(t, 6, place)
	closed.Close()
	tests := []struct {
		name string
		ask  func() error
		want error
		text string
	}{
		{"a repeated put", func() error { return dial(t, 1, place).Put("taken", []byte("again")) }, ErrExists, `rank 1: put "taken": `},
		{"nobody puts", func() error { _, err := dial(t, 2, place).Get("none", time.Millisecond); return err }, ErrTimeout, `rank 2: get "none": no rank put it in time (1ms)`},
		{"not yet", func() error { _, err := dial(t, 3, place).TryGet("none"); return err }, ErrNotFound, `rank 3: try to get "none": `},
		{"a stranger", func() error { return impatient(4, stranger).Put("x", nil) }, ErrUnreachable, `rank 4: put "x": rank 0, which has the store, does not answer`},
		{"nobody there", func() error {
			_, err := impatient(5, Place{[]string{"127.0.0.1:1"}, place.Key}).Get("x", long)
			return err
		}, ErrUnreachable, `rank 5: get "x": rank 0, which has the store, does not answer`},
		{"closed", func() error { _, err := closed.Get("x", long); return err }, ErrClosed, `rank 6: get "x": `},
		{"too large", func() error { return dial(t, 7, place).Put("x", make([]byte, maxValue+1)) }, nil, `rank 7: put "x": the value has 67108865 bytes`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.ask()
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %q", err, test.text)
			}
		})
	}
}

// TestStrangers: data that strangers send to the store's port changes nothing, and delays nobody.
func TestStrangers(t *testing.T) {
	place := listen(t).Place()
	for i := range 100 {
		conn, err := net.Dial("tcp", place.Addresses[0])
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = conn.Write(bytes.Repeat([]byte{byte(i)}, i*7)) // The connection may be closed already.
	}
	friend, err := network.Dial(t.Context(), place.Addresses, place.Key)
	if err != nil {
		t.Fatal(err)
	}
	defer friend.Close()
	if _, err := friend.Write([]byte("\x07this is no request")); err != nil {
		t.Fatal(err)
	}
	s := dial(t, 1, place)
	if err := s.Put("key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	if value, err := s.Get("key", long); string(value) != "value" || err != nil {
		t.Errorf("%q, %v", value, err)
	}
}

// TestRankZeroEnds: if rank 0 ends while others wait, their errors name the key that they wait for.
func TestRankZeroEnds(t *testing.T) {
	server := listen(t)
	s := dial(t, 3, server.Place())
	s.patience = 200 * time.Millisecond
	failed := make(chan error)
	go func() {
		_, err := s.Get("global_topology/cuda", long)
		failed <- err
	}()
	if err := s.Put("x", nil); err != nil { // The store is in use.
		t.Fatal(err)
	}
	server.Close()
	err := <-failed
	if want := `keyvalue: rank 3: get "global_topology/cuda": rank 0, which has the store, does not answer`; !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestClose: Close ends operations that wait.
func TestClose(t *testing.T) {
	s := dial(t, 1, listen(t).Place())
	failed := make(chan error)
	for range 3 {
		go func() {
			_, err := s.Get("never", long)
			failed <- err
		}()
	}
	if err := s.Put("x", nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	for range 3 {
		if err := <-failed; !errors.Is(err, ErrClosed) {
			t.Errorf("got %v, want %v", err, ErrClosed)
		}
	}
}

// TestNoFilesLeft: a process without free file descriptors asks again until it has some.
func TestNoFilesLeft(t *testing.T) {
	s := dial(t, 1, listen(t).Place())
	if err := s.Put("key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	files := ranktest.UseUpFiles(t)
	got := make(chan string)
	go func() {
		value, err := s.Get("key", long)
		got <- fmt.Sprintf("%s %v", value, err)
	}()
	time.Sleep(100 * time.Millisecond) // It tries, and fails.
	files.CloseAll()
	if text := <-got; text != "value <nil>" {
		t.Error(text)
	}
}
