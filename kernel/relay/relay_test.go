package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/kernel/assist"
	"gonbatch/kernel/magic"
	"gonbatch/kernel/wire"
)

// TestExecute executes cells that a small kernel behind the relay answers.
func TestExecute(t *testing.T) {
	b := start(t)
	tests := []struct {
		name, code string
		want       []string // published between busy and idle
		status     string
	}{
		{name: "output", code: "out hello", want: []string{"execute_input", "stream"}, status: "ok"},
		{name: "a panic is one error", code: "panic", want: []string{"execute_input", "error"}, status: "error"},
		{name: "an unknown magic", code: "%nothing", want: []string{"execute_input", "error"}, status: "error"},
		{name: "a failing command", code: "!false", want: []string{"execute_input", "error"}, status: "error"},
		{name: "a command", code: "!true", want: []string{"execute_input"}, status: "ok"},
		{name: "a command of which nobody knows how it ended", code: "!lost", want: []string{"execute_input", "error"}, status: "error"},
		{name: "that may fail", code: "%allow_fail\n!false", want: []string{"execute_input"}, status: "ok"},
		{name: "the screen is cleared", code: "out a\x1b[H\x1b[2Jb", want: []string{"execute_input", "clear_output", "stream"}, status: "ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := b.ask("execute_request", object{"code": tt.code})
			published := b.untilIdle(id)
			if got := types(published); !slices.Equal(got, append(append([]string{"status"}, tt.want...), "status")) {
				t.Errorf("published %v, want %v between two statuses", got, tt.want)
			}
			if got := text(t, b.next(), "status"); got != tt.status {
				t.Errorf("status %q, want %q", got, tt.status)
			}
		})
	}
}

// TestAbort: cells that wait behind a failing one are aborted, and later cells run.
func TestAbort(t *testing.T) {
	b := start(t)
	b.ask("execute_request", object{"code": "wait"})
	for _, code := range []string{"out 1", "out 2"} {
		b.ask("execute_request", object{"code": code})
	}
	b.ask("is_complete_request", object{"code": "var x int"})
	time.Sleep(200 * time.Millisecond) // until all have arrived
	close(b.gonb.release)
	var got []string
	for range 4 {
		got = append(got, text(t, b.next(), "status"))
	}
	if want := []string{"error", "aborted", "aborted", "complete"}; !slices.Equal(got, want) {
		t.Errorf("replies %v, want %v", got, want)
	}
	b.ask("execute_request", object{"code": "out 3"})
	if got := text(t, b.next(), "status"); got != "ok" {
		t.Errorf("the next cell: %q, want ok", got)
	}
}

// TestRefused sends messages that a relay must not accept, and checks that it is alive after each.
func TestRefused(t *testing.T) {
	b := start(t)
	request, err := wire.New("kernel_info_request", object{})
	if err != nil {
		t.Fatal(err)
	}
	good := b.shell.codec.Encode(request)
	change := func(i int, frame string) [][]byte {
		frames := slices.Clone(good)
		frames[i] = []byte(frame)
		return frames
	}
	tests := []struct {
		name   string
		frames [][]byte
		log    string
	}{
		{name: "forged signature", frames: change(1, strings.Repeat("0", 64)), log: "signature refused"},
		{name: "changed content", frames: change(5, `{"a":1}`), log: "signature refused"},
		{name: "no signature", frames: change(1, ""), log: "signature refused"},
		{name: "no delimiter", frames: change(0, "x"), log: "malformed message"},
		{name: "too few frames", frames: good[:4], log: "malformed message"},
		{name: "one frame", frames: [][]byte{{}}, log: "malformed message"},
		{name: "replayed", frames: good, log: "received twice"},
	}
	if err := b.shell.Send(good); err != nil {
		t.Fatal(err)
	}
	b.next()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.log.reset()
			if err := b.shell.Send(tt.frames); err != nil {
				t.Fatal(err)
			}
			id := b.ask("kernel_info_request", object{})
			if reply := b.next(); reply.ParentID != id {
				t.Errorf("%s answers %s, want %s", reply.Header.Type, reply.ParentID, id)
			}
			if got := b.log.String(); !strings.Contains(got, tt.log) {
				t.Errorf("log %q, want %q", got, tt.log)
			}
		})
	}
}

// TestVolume: many small messages all arrive in order, and a large one arrives completely.
func TestVolume(t *testing.T) {
	b := start(t)
	const many, large = 10_000, 64 << 20
	published := b.untilIdle(b.ask("execute_request", object{"code": fmt.Sprintf("many %d", many)}))
	if got := len(published) - 3; got != many { // busy, execute_input, idle
		t.Fatalf("%d messages, want %d", got, many)
	}
	for i, m := range published[2 : many+2] {
		if _, text := stream(m); text != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, text)
		}
	}
	b.next()
	published = b.untilIdle(b.ask("execute_request", object{"code": fmt.Sprintf("large %d", large)}))
	if _, text := stream(published[2]); len(text) != large {
		t.Errorf("%d bytes, want %d", len(text), large)
	}
}

// TestClients: several clients send requests concurrently; each gets the replies to its own
// requests, in order, and sees everything that is published.
func TestClients(t *testing.T) {
	b := start(t)
	const clients, requests = 4, 25
	var wait sync.WaitGroup
	for i := range clients {
		s := b.another(fmt.Sprintf("client %d", i))
		wait.Add(1)
		go func() {
			defer wait.Done()
			var ids []string
			for j := range requests {
				m := newMessage(t, []string{"execute_request", "kernel_info_request", "is_complete_request"}[j%3], object{"code": fmt.Sprintf("out %d", i)})
				ids = append(ids, m.Header.ID)
				if err := s.send(m); err != nil {
					t.Error(err)
					return
				}
			}
			for _, id := range ids {
				frames, err := s.Receive(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				reply, err := s.codec.Decode(frames)
				if err != nil || reply.ParentID != id {
					t.Errorf("client %d: reply to %v, %v; want %s", i, reply, err, id)
					return
				}
			}
		}()
	}
	idle := 0
	for idle < clients*requests {
		if m := receive(t, b.iopub); m.Header.Type == "status" && text(t, m, "execution_state") == "idle" {
			idle++
		}
	}
	wait.Wait()
}

// TestControl: an interrupt and a shutdown are answered on control while a cell runs.
func TestControl(t *testing.T) {
	b := start(t)
	b.ask("execute_request", object{"code": "wait"})
	for _, request := range []string{"kernel_info_request", "interrupt_request", "shutdown_request"} {
		if err := b.control.send(newMessage(t, request, object{})); err != nil {
			t.Fatal(err)
		}
		reply := receive(t, b.control)
		if got, want := reply.Header.Type, strings.Replace(request, "request", "reply", 1); got != want {
			t.Errorf("%s answers %s", got, request)
		}
	}
	if b.interrupts.Load() != 1 {
		t.Errorf("%d interrupts, want 1", b.interrupts.Load())
	}
	select {
	case <-b.ended:
	case <-time.After(5 * time.Minute):
		t.Error("the relay runs on after its shutdown")
	}
}

// TestInterrupt: an interrupt is repeated until its cell has ended; without a running cell it is
// not.
func TestInterrupt(t *testing.T) {
	b := start(t)
	interrupt := func() { t.Helper(); b.interrupt() }
	interrupt()
	if n := b.settles.Load(); n != 1 {
		t.Errorf("GoNB settled %d times, want 1", n)
	}
	if n := b.interrupts.Load(); n != 1 {
		t.Errorf("%d interrupts without a cell", n)
	}
	b.ask("execute_request", object{"code": "wait"})
	<-b.gonb.waits
	interrupt()
	for deadline := time.Now().Add(5 * time.Minute); b.repeated.Load() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("an interrupt was repeated %d times in 5 minutes", b.repeated.Load())
		}
	}
	close(b.gonb.release)
	if got := text(t, b.next(), "ename"); got != "Interrupted" {
		t.Errorf("the cell ended by %q", got)
	}
	repeated := b.repeated.Load()
	time.Sleep(3 * interruptPause)
	if n := b.interrupts.Load(); n != 2 {
		t.Errorf("%d interrupts, want 2", n)
	}
	if n := b.repeated.Load(); n != repeated {
		t.Errorf("an interrupt was repeated %d times after its cell", n-repeated)
	}
}

// TestSettle: a cell that was interrupted ends only when GoNB has noticed that, and nothing is
// interrupted in between: it would be the next cell.
func TestSettle(t *testing.T) {
	b := start(t)
	b.unsettled.Lock()
	b.ask("execute_request", object{"code": "wait"})
	<-b.gonb.waits
	b.interrupt()
	close(b.gonb.release)
	if got := text(t, b.next(), "ename"); got != "Interrupted" {
		t.Errorf("the cell ended by %q", got)
	}
	for deadline := time.Now().Add(5 * time.Minute); b.settles.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("GoNB was not settled in 5 minutes")
		}
	}
	repeated := b.repeated.Load()
	b.interrupt()
	next := b.ask("execute_request", object{"code": "out next"})
	time.Sleep(3 * interruptPause)
	if n, again := b.interrupts.Load(), b.repeated.Load()-repeated; n != 1 || again != 0 {
		t.Errorf("while GoNB settled: %d interrupts, and %d times again; want 1 and 0", n, again)
	}
	if n := b.gonb.executed.Load(); n != 1 {
		t.Errorf("GoNB executed %d cells before it had settled, want 1", n)
	}
	b.unsettled.Unlock()
	b.untilIdle(next)
	b.interrupt()
	if n := b.interrupts.Load(); n != 2 {
		t.Errorf("%d interrupts, want 2: an idle kernel can be interrupted", n)
	}
	if begun, ended := b.settles.Load(), b.settled.Load(); begun != 2 || ended != 2 {
		t.Errorf("GoNB began to settle %d times and has %d times, want 2", begun, ended)
	}
}

// TestHeartbeats: heartbeats, which have no signature, come back, but large ones are refused.
func TestHeartbeats(t *testing.T) {
	b := start(t)
	beat := newDealer(t.Context(), "beat")
	defer beat.Close() //nolint:errcheck // only read from
	if err := beat.dial(b.address.address(b.address.Heartbeat)); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{4, mostBeats / 2, mostBeats} {
		if err := beat.Send([][]byte{nil, make([]byte, size)}); err != nil {
			t.Fatal(err)
		}
		if frames := must(beat.Receive(t.Context())); len(frames) != 2 || len(frames[1]) != size {
			t.Errorf("a heartbeat of %d bytes came back as %d frames", size, len(frames))
		}
	}
	_ = beat.Send([][]byte{nil, make([]byte, mostBeats+1)}) // The connection may have ended already.
	for deadline := time.Now().Add(time.Minute); !strings.Contains(b.log.String(), "at most 65536 are accepted"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("a large heartbeat was not refused: %s", b.log)
		}
	}
}

// BenchmarkExecute measures an empty cell through the relay, with a kernel behind it that does
// nothing.
func BenchmarkExecute(b *testing.B) {
	bed := start(b)
	for b.Loop() {
		bed.ask("execute_request", object{"code": ""})
		bed.next()
	}
}

// bed is a client, a relay, and a small kernel instead of GoNB.
type bed struct {
	testing.TB
	shell, control, iopub *socket
	gonb                  *smallKernel
	log                   *logBuffer
	interrupts            atomic.Int32
	repeated              atomic.Int32
	// settles counts how often GoNB began to settle, settled how often it has.
	settles, settled atomic.Int32
	unsettled        sync.Mutex // keeps GoNB from settling
	ended            chan struct{}
	address          Connection
	backAddress      Connection
}

func start(t testing.TB) *bed {
	t.Helper()
	dir, err := os.MkdirTemp("", "relay") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	front, back := PrivateConnection(filepath.Join(dir, "f")), PrivateConnection(filepath.Join(dir, "b"))
	for _, c := range []Connection{front, back} {
		if err := os.Mkdir(filepath.Dir(c.IP), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b := &bed{TB: t, log: &logBuffer{}, ended: make(chan struct{}), backAddress: back}
	statusFile := filepath.Join(dir, "status")
	b.gonb = startSmallKernel(t, back, statusFile)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(b.ended)
		opts := Options{Front: front, Back: back, StatusProgram: "status", StatusFile: statusFile, Log: b.log,
			CellDir: dir, Stdin: filepath.Join(dir, "stdin"), Assist: silent{}, Magics: magic.New(magic.Options{Dir: func() string { return dir }}),
			Ready: func() {}, Answered: func() error { return nil },
			Interrupt: func() func() { b.interrupts.Add(1); return func() { b.repeated.Add(1) } },
			Settle: func() {
				b.settles.Add(1)
				b.unsettled.Lock()
				defer b.unsettled.Unlock()
				b.settled.Add(1)
			}}
		if err := Run(ctx, opts); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-b.ended })
	b.connect(ctx, front)
	return b
}

// silent is an Assistant that knows nothing.
type silent struct{}

func (silent) Complete(_ context.Context, _ string, at int) (assist.Completion, error) {
	return assist.Completion{Start: at, End: at}, nil
}

func (silent) Inspect(context.Context, string, int) (string, error) { return "", nil }

func (silent) Warm(context.Context) {}

func (b *bed) connect(ctx context.Context, c Connection) {
	b.Helper()
	b.address = c
	codec := must(wire.NewCodec(c.Scheme, c.Key))
	shell, control, iopub := newDealer(ctx, "client"), newDealer(ctx, "client"), newSub(ctx)
	b.shell, b.control, b.iopub = &socket{shell, codec}, &socket{control, codec}, &socket{iopub, codec}
	for port, s := range map[int]*dialed{c.Shell: shell, c.Control: control, c.IOPub: iopub} {
		if err := s.dial(c.address(port)); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond) // until the subscription has arrived
}

// another returns the shell socket of another client.
func (b *bed) another(name string) *socket { b.Helper(); return b.anotherAt(b.address, name) }

// anotherAt returns the shell socket of a client of the relay, or of the small kernel.
func (b *bed) anotherAt(address Connection, name string) *socket {
	b.Helper()
	client := newDealer(context.Background(), name)
	s := &socket{client, must(wire.NewCodec(address.Scheme, address.Key))}
	if err := client.dial(address.address(address.Shell)); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func (b *bed) ask(messageType string, content any) (id string) {
	b.Helper()
	m := newMessage(b, messageType, content)
	if err := b.shell.send(m); err != nil {
		b.Fatal(err)
	}
	return m.Header.ID
}

func (b *bed) next() *wire.Message { b.Helper(); return receive(b, b.shell) }

// interrupt sends an interrupt and waits for its reply.
func (b *bed) interrupt() {
	b.Helper()
	if err := b.control.send(newMessage(b, "interrupt_request", object{})); err != nil {
		b.Fatal(err)
	}
	receive(b, b.control)
}

// untilIdle collects the messages published about a request.
func (b *bed) untilIdle(id string) []*wire.Message {
	b.Helper()
	var published []*wire.Message
	for {
		m := receive(b, b.iopub)
		if m.ParentID != id {
			continue
		}
		published = append(published, m)
		if m.Header.Type == "status" && text(b, m, "execution_state") == "idle" {
			return published
		}
	}
}

func newMessage(t testing.TB, messageType string, content any) *wire.Message {
	t.Helper()
	m, err := wire.New(messageType, content)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func receive(t testing.TB, s *socket) *wire.Message {
	t.Helper()
	frames, err := s.Receive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := s.codec.Decode(frames)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func text(t testing.TB, m *wire.Message, field string) string {
	t.Helper()
	var content object
	if err := json.Unmarshal(m.Content, &content); err != nil {
		t.Fatal(err)
	}
	value, _ := content[field].(string)
	return value
}

func types(messages []*wire.Message) []string {
	var list []string
	for _, m := range messages {
		list = append(list, m.Header.Type)
	}
	return list
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// logBuffer is a buffer for several goroutines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.text.String() }
func (l *logBuffer) reset()         { l.mu.Lock(); defer l.mu.Unlock(); l.text.Reset() }
