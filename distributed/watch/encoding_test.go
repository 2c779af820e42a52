package watch

import (
	"bytes"
	"encoding/binary"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

// messages are one of each kind, with values at the limits of their types.
func messages() []any {
	all := make([]Collective, maxRecent)
	for i := range all {
		all[i] = Collective{Number: ^uint64(0) - uint64(i), Kind: AllToAll, Type: BFloat16, Count: 1 << 62, Detail: -1 << 63}
	}
	failure := rundir.Failure{Kind: rundir.Died, Rank: 3, Host: "n2", Step: 17, Error: "panic: ü\n", LogTail: []string{"a", "b"}}
	return []any{
		hello{Rank: 1023, Crash: true, Host: "n1", Process: rundir.Process{Host: "n1", Boot: "b", PID: 12, Start: "34"}},
		report{State: &State{}},
		report{State: &State{Step: -1, Busy: true, Entered: 3, Left: 2, Since: -time.Hour, Recent: all, Current: all[0], Closing: true, Told: true, Problem: "it failed"}},
		report{State: &State{Closing: true, Problem: strings.Repeat("x", 70_000)}},
		report{State: &State{Alone: "downloads ü", AloneFor: time.Hour, Moved: 1}},
		report{Failure: &failure},
		report{Bye: true},
		report{Ready: true},
		order{Bye: true},
		order{Verdict: &verdict{Failure: failure, Stacks: true, Stuck: []rundir.Process{{PID: 5}}}},
	}
}

// TestMessagesArrive: each message arrives as it was sent, one after the other.
func TestMessagesArrive(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	from, to := newLink(a), newLink(b)
	go func() {
		for _, m := range messages() {
			if err := from.send(m); err != nil {
				t.Error(err)
			}
		}
	}()
	for _, want := range messages() {
		got := reflect.New(reflect.TypeOf(want))
		if err := to.receive(got.Interface()); err != nil {
			t.Fatalf("%+v: %v", want, err)
		}
		if !reflect.DeepEqual(got.Elem().Interface(), want) {
			t.Errorf("got %+v, want %+v", got.Elem().Interface(), want)
		}
	}
}

// FuzzReport: what isn't a report is an error, and no more memory than its size.
func FuzzReport(f *testing.F) {
	for _, m := range messages() {
		if r, ok := m.(report); ok {
			data, _ := r.MarshalBinary()
			f.Add(data)
			f.Add(data[:len(data)/2])
		}
	}
	empty, _ := report{State: &State{}}.MarshalBinary()
	f.Add(append(empty[:len(empty)-binary.Size(sizes{})], bytes.Repeat([]byte{0xff}, 50)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r report
		if r.UnmarshalBinary(data) != nil || r.State == nil {
			return
		}
		if len(r.State.Recent) > len(data) || len(r.State.Problem)+len(r.State.Alone) > len(data) {
			t.Errorf("%d bytes say %d collectives", len(data), len(r.State.Recent))
		}
	})
}
