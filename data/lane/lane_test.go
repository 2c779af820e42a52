package lane_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/lane"
)

// stream has parts of these lengths. An example is its part, its number there and the pass.
type stream []int

type example struct{ part, number, pass int }

func (s stream) Name() string { return "stream" }
func (s stream) Parts() int   { return len(s) }

func (s stream) Read(part, pass, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := skip; i < s[part]; i++ {
			if !yield(example{part, i, pass}, nil) {
				return
			}
		}
	}
}

func (s stream) Batch([]any) (inputs, labels []*tensors.Tensor, err error) { return nil, nil, nil }

// take takes n examples, and compares their places.
func take(t *testing.T, l *lane.Lane, n int) (all []example) {
	t.Helper()
	for range n {
		one, err := l.Next()
		if err != nil {
			t.Fatal(err)
		}
		e := one.(example)
		if at := l.Place(); at != (lane.Place{Part: e.part, Pass: e.pass, Number: e.number}) {
			t.Fatalf("%+v is at %+v", e, at)
		}
		all = append(all, e)
	}
	return all
}

func random(r *rand.Rand) (stream, lane.Config) {
	s := make(stream, 1+r.IntN(12))
	for i := range s {
		s[i] = r.IntN(40) * r.IntN(3)
	}
	s[0], s[len(s)-1] = 20, 20
	c := lane.Config{Lanes: 1 + r.IntN(8), Seed: r.Uint64()}
	if r.IntN(3) > 0 {
		c.Block = 1 + r.IntN(50)
	}
	return s, c
}

// TestEachExampleOnce: in a pass, the lanes have each example once, whatever their number.
func TestEachExampleOnce(t *testing.T) {
	for seed := range uint64(200) {
		s, c := random(rand.New(rand.NewPCG(seed, 1)))
		counts := map[example]int{}
		for i := range c.Lanes {
			l := lane.New(s, c, lane.Position{Lane: i})
			for l.Position().Pass < 4 { // The blocks that begin in these passes have all examples of the first three.
				one, err := l.Next()
				if err != nil {
					t.Fatalf("seed %d, %v, %+v: lane %d: %v", seed, s, c, i, err)
				}
				if e := one.(example); e.pass < 3 {
					counts[e]++
				}
			}
			l.Close()
		}
		for part, n := range s {
			for number := range n {
				for pass := range 3 {
					if counts[example{part, number, pass}] != 1 {
						t.Fatalf("seed %d, %v, %+v: example %d of part %d is there %d times in pass %d", seed, s, c, number, part, counts[example{part, number, pass}], pass)
					}
				}
			}
		}
	}
}

// TestResume: a lane that goes on at a position has the examples that it would have had.
func TestResume(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		s, c := random(r)
		at := lane.Position{Lane: 0}
		want := take(t, lane.New(s, c, at), 300)
		var got []example
		for len(got) < 300 {
			l := lane.New(s, c, at)
			got = append(got, take(t, l, min(r.IntN(90), 300-len(got)))...)
			at = l.Position()
			l.Close()
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d, %v, %+v: got %v, want %v", seed, s, c, got, want)
		}
	}
}

// TestOrder: without a block, a lane has the stream's order, and in later passes that of another
// lane's parts; with one, each pass has another order.
func TestOrder(t *testing.T) {
	s := stream{3, 0, 2, 4}
	plain := take(t, lane.New(s, lane.Config{Lanes: 2}, lane.Position{Lane: 1}), 9)
	if want := []example{{3, 0, 0}, {3, 1, 0}, {3, 2, 0}, {3, 3, 0}, {0, 0, 1}, {0, 1, 1}, {0, 2, 1}, {2, 0, 1}, {2, 1, 1}}; !slices.Equal(plain, want) {
		t.Errorf("got %v, want %v", plain, want)
	}
	shared := take(t, lane.New(stream{5}, lane.Config{Lanes: 2}, lane.Position{Lane: 1}), 3)
	if want := []example{{0, 1, 0}, {0, 3, 0}, {0, 0, 1}}; !slices.Equal(shared, want) {
		t.Errorf("a shared part: got %v, want %v", shared, want)
	}
	mixed := take(t, lane.New(stream{500, 500}, lane.Config{Lanes: 1, Block: 1000, Seed: 1}, lane.Position{}), 2000)
	early := 0
	for _, e := range mixed[:500] {
		if e.part == 0 {
			early++
		}
	}
	if early < 200 || early > 300 {
		t.Errorf("%d of the first 500 examples are of part 0", early)
	}
	if mixed[0].number == mixed[1000].number && mixed[1].number == mixed[1001].number {
		t.Error("two passes have the same order")
	}
}

// failing yields an error.
type failing struct{ stream }

func (failing) Read(part, _, skip int) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		for i := skip; i < 2; i++ {
			if !yield(part, nil) {
				return
			}
		}
		yield(nil, errors.New("torn"))
	}
}

// oops panics when it is read, and names its parts.
type oops struct {
	stream
	at int // The example; -1: Read itself panics.
}

func (oops) PartName(part int) string { return fmt.Sprintf("crawl-%d.gz", part) }

func (o oops) Read(part, pass, skip int) iter.Seq2[any, error] {
	if o.at < 0 {
		panic("oh")
	}
	return func(yield func(any, error) bool) {
		for i := skip; ; i++ {
			if i == o.at {
				panic("oh")
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

// TestPanics: the error of a stream that panics names the part, also in a search for examples.
func TestPanics(t *testing.T) {
	for want, s := range map[string]oops{
		`example 0 of part "crawl-0.gz" (pass 0): panic: oh`: {stream{9}, -1},
		`example 3 of part "crawl-0.gz" (pass 0): panic: oh`: {stream{9}, 3},
	} {
		l := lane.New(s, lane.Config{Lanes: 1}, lane.Position{})
		var err error
		for range 5 {
			if _, err = l.Next(); err != nil {
				break
			}
		}
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		l.Close()
	}
	if _, err := lane.New(second{oops{stream{0, 0}, 0}}, lane.Config{Lanes: 2}, lane.Position{}).Next(); err == nil || err.Error() != `example 0 of part "crawl-1.gz" (pass 0): panic: oh` {
		t.Errorf("in a search: %v", err)
	}
}

// second has an empty first part.
type second struct{ oops }

func (s second) Read(part, pass, skip int) iter.Seq2[any, error] {
	if part == 0 {
		return s.stream.Read(part, pass, skip)
	}
	return s.oops.Read(part, pass, skip)
}

func TestErrors(t *testing.T) {
	l := lane.New(failing{stream{9}}, lane.Config{Lanes: 1}, lane.Position{})
	take := func() error {
		for range 5 {
			if _, err := l.Next(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := take(); err == nil || !strings.Contains(err.Error(), "example 2 of part 0 (pass 0): torn") {
		t.Errorf("got %v", err)
	}
	if _, err := l.Next(); err == nil || l.Position() != (lane.Position{Skip: 2, Block: 2}) {
		t.Errorf("after an error: %v at %+v", err, l.Position())
	}
	l = lane.New(failing{stream{9}}, lane.Config{Lanes: 1, Block: 4}, lane.Position{})
	if err := take(); err == nil || l.Position() != (lane.Position{}) {
		t.Errorf("an error in a block: %v at %+v, which loses examples", err, l.Position())
	}
	l = lane.New(stream{0, 0, 0}, lane.Config{Lanes: 2, Block: 3}, lane.Position{Lane: 1})
	if err := take(); err == nil || err.Error() != "the stream has no examples: Read yields none in its 3 parts" {
		t.Errorf("got %v", err)
	}
}

// TestBillion: a stream of a billion examples needs the memory of a block.
func TestBillion(t *testing.T) {
	s := make(stream, 1000)
	for i := range s {
		s[i] = 1_000_000
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := lane.New(s, lane.Config{Lanes: 1, Block: 10_000, Seed: 1}, lane.Position{Pass: 2, Turn: 500, Skip: 999_000, Block: 150_000})
	defer l.Close()
	take(t, l, 30_000)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if used := int64(after.HeapAlloc) - int64(before.HeapAlloc); used > 8<<20 {
		t.Errorf("%d bytes are in use", used)
	}
	if text := fmt.Sprint(l.Position()); len(text) > 60 {
		t.Errorf("the position is %s", text)
	}
}
