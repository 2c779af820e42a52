package tcp

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gonbatch/distributed/network"
	"gonbatch/distributed/ranktest"
)

// patience is far longer than anything takes on a busy machine, but shorter than a rank that is
// blocked.
const patience = 2 * time.Minute

// together starts all ranks of a job in this process, and each of them calls the barrier.
func together(t *testing.T, configs []Config) {
	t.Helper()
	var group sync.WaitGroup
	for _, c := range configs {
		group.Go(func() {
			comm, err := Init(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			if err := errors.Join(comm.Barrier(), comm.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

func configs(t *testing.T, n int) []Config {
	all := make([]Config, n)
	for rank := range all {
		all[rank] = Config{Rank: rank, Size: n, Local: true, Secret: "of this job", Timeout: patience}
	}
	master := ranktest.FreeAddress(t)
	for rank := range all {
		all[rank].Master = master
	}
	return all
}

// TestReservedMaster: the ranks meet at a port that another socket is bound to, again and again.
func TestReservedMaster(t *testing.T) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket) //nolint:errcheck // nothing was written
	if err := errors.Join(unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), unix.Bind(socket, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	all := configs(t, 3)
	for rank := range all {
		all[rank].Master, all[rank].Reserved = fmt.Sprintf("127.0.0.1:%d", name.(*unix.SockaddrInet4).Port), true
	}
	for range 3 {
		together(t, all)
	}
	all[0].Reserved = false
	if _, err := Init(t.Context(), all[0]); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a port that somebody else keeps: %v", err)
	}
}

// pester keeps connecting to an address, as strangers might: silent ones, and ones that send data.
func pester(t *testing.T, address string) {
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; i < 200 && ctx.Err() == nil; i++ {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				time.Sleep(time.Millisecond)
				continue
			}
			defer conn.Close()
			if i%2 == 0 {
				_ = gob.NewEncoder(conn).Encode(member{Rank: 1, Size: 3, Addresses: []string{"127.0.0.1:1"}})
			}
			time.Sleep(time.Millisecond)
		}
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}

// TestStrangersAtTheRendezvous: strangers don't delay a rank, and are not mistaken for one.
func TestStrangersAtTheRendezvous(t *testing.T) {
	all := configs(t, 3)
	pester(t, all[0].Master)
	time.Sleep(50 * time.Millisecond)
	start := time.Now()
	together(t, all)
	if took := time.Since(start); took > patience/2 {
		t.Errorf("strangers delayed the ranks: they took %v", took)
	}
}

// TestStrangersAmongNeighbours: a stranger that connects before the previous rank is not mistaken
// for it.
func TestStrangersAmongNeighbours(t *testing.T) {
	const n = 3
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	key := network.NewKey()
	listeners, addresses := make([]*network.Listener, n), make([][]string, n)
	for rank := range listeners {
		l, err := network.Listen(ctx, true, "0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		listeners[rank] = l
		pester(t, l.Addr().String())
	}
	for rank := range addresses { // The first address belongs to another rank of this job.
		addresses[rank] = []string{listeners[(rank+1)%n].Addr().String(), listeners[rank].Addr().String()}
	}
	all, err := json.Marshal(addresses)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	var group sync.WaitGroup
	for rank := range n {
		group.Go(func() {
			c, err := newComm(ctx, Config{Rank: rank, Size: n}, listeners[rank], reply{Next: addresses[(rank+1)%n], All: all, Key: key})
			if err != nil {
				t.Error(err)
				return
			}
			all, err := c.AllGather([]byte{byte(rank)})
			if err := errors.Join(err, c.Close()); err != nil || fmt.Sprint(all) != "[[0] [1] [2]]" {
				t.Errorf("rank %d got %v, %v", rank, all, err)
			}
		})
	}
	group.Wait()
}

// TestComesBack: a rank that dies before all have registered may come back.
func TestComesBack(t *testing.T) {
	all := configs(t, 3)
	started := make(chan error, 1)
	go func() {
		comm, err := Init(t.Context(), all[0])
		if err == nil {
			err = errors.Join(comm.Barrier(), comm.Close())
		}
		started <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := network.DialUntil(ctx, []string{all[0].Master}, all[2].key())
	if err != nil {
		t.Fatal(err)
	}
	if err := gob.NewEncoder(conn).Encode(member{Rank: 2, Size: 3, Addresses: []string{"127.0.0.1:1"}}); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite() // As the kernel does for a process that ends.
	_, _ = conn.Read(make([]byte, 1))    // Wait until rank 0 has noticed.
	conn.Close()
	together(t, all[1:])
	if err := <-started; err != nil {
		t.Error(err)
	}
}

// TestAnotherJob: ranks of another job at the same address are refused, and the error names the
// missing rank.
func TestAnotherJob(t *testing.T) {
	all := configs(t, 3)
	all[2].Secret = "of another job"
	errs := make(chan error, 3)
	for _, c := range all {
		if c.Rank != 1 { // Rank 1 stays until rank 0 leaves.
			c.Timeout = 5 * time.Second
		}
		go func() {
			_, err := Init(t.Context(), c)
			errs <- err
		}()
	}
	text := ""
	for range all {
		text += fmt.Sprintln(<-errs)
	}
	for _, want := range []string{"missing: rank 2", network.ErrStranger.Error()} {
		if !strings.Contains(text, want) {
			t.Errorf("the errors lack %q: %s", want, text)
		}
	}
}
