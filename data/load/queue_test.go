package load_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gonbatch/data/load"
)

// factory builds numbers, each in a time of its own, and counts.
type factory struct {
	mu                      sync.Mutex
	fails                   int // The number that can't be built.
	times                   []time.Duration
	begun, building, built  int
	mostBuilding, mostAhead int
	taken                   int // By the user.
	dropped                 []int
}

var errFails = errors.New("fails")

// next returns the builders of all numbers.
func (f *factory) next() func() (func() (int, error), bool) {
	number := -1
	return func() (func() (int, error), bool) {
		number++
		if number == len(f.times) {
			return nil, false
		}
		mine := number
		return func() (int, error) { return f.build(mine) }, true
	}
}

func (f *factory) build(number int) (int, error) {
	f.mu.Lock()
	f.begun++
	f.building++
	f.mostBuilding = max(f.mostBuilding, f.building)
	f.mostAhead = max(f.mostAhead, f.begun-f.taken)
	f.mu.Unlock()
	time.Sleep(f.times[number])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.building--
	if number == f.fails {
		return 0, errFails
	}
	f.built++
	return number, nil
}

func (f *factory) options(workers, ahead int) load.Options[int] {
	return load.Options[int]{Workers: workers, Ahead: ahead, Drop: func(number int) { f.dropped = append(f.dropped, number) }}
}

func (f *factory) take() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.taken++
}

// TestQueueAgainstLoop: whatever the workers, the times and the end, a queue yields what a loop
// does, is never further ahead than it may be, and drops exactly what was built but not used.
func TestQueueAgainstLoop(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		n, workers, ahead := rng.IntN(30), rng.IntN(5), 1+rng.IntN(6)
		stop, fails := rng.IntN(n+5), -1
		if rng.IntN(3) == 0 {
			fails = rng.IntN(n + 1)
		}
		f := &factory{fails: fails, times: make([]time.Duration, n)}
		for i := range f.times {
			f.times[i] = time.Duration(rng.IntN(20)) * time.Millisecond
		}
		what := fmt.Sprintf("%d values, %d workers, %d ahead, stopped after %d, %d fails", n, workers, ahead, stop, fails)
		synctest.Test(t, func(t *testing.T) {
			var got []int
			var failed error
			f.taken = 1 // The one that is asked for is not ahead.
			for value, err := range load.NewQueue(f.options(workers, ahead), f.next()).All() {
				if failed = err; err != nil {
					break
				}
				if got = append(got, value); len(got) == stop {
					break
				}
				time.Sleep(5 * time.Millisecond)
				f.take()
			}
			f.check(t, what, got, failed, stop, workers, max(workers, ahead))
		})
	}
}

func (f *factory) check(t *testing.T, what string, got []int, failed error, stop, workers, ahead int) {
	t.Helper()
	want := len(f.times)
	if stop > 0 {
		want = min(want, stop)
	}
	fails := f.fails >= 0 && f.fails < want
	if fails {
		want = f.fails
	}
	for i, value := range got {
		if value != i {
			t.Fatalf("%s: value %d is %d", what, i, value)
		}
	}
	if len(got) != want || (failed != nil) != fails {
		t.Errorf("%s: %d values and %v, want %d", what, len(got), failed, want)
	}
	if f.building != 0 || f.built != len(got)+len(f.dropped) || len(slices.Compact(slices.Sorted(slices.Values(f.dropped)))) != len(f.dropped) {
		t.Errorf("%s: %d are being built after the end; %d were built, %d used, %v dropped", what, f.building, f.built, len(got), f.dropped)
	}
	if f.mostBuilding > max(workers, 1) || f.mostAhead > ahead && workers > 0 {
		t.Errorf("%s: %d were built at once, %d ahead", what, f.mostBuilding, f.mostAhead)
	}
}

// TestQueueIsAhead: while a value is used, all workers build, and the values after it are ready
// without waiting.
func TestQueueIsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &factory{fails: -1, times: slices.Repeat([]time.Duration{30 * time.Millisecond}, 100)}
		queue := load.NewQueue(f.options(3, 5), f.next())
		defer queue.Close()
		for range 20 {
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			before := time.Now()
			if _, _, err := queue.Next(); err != nil || time.Since(before) != 0 {
				t.Fatalf("waited for %s, %v", time.Since(before), err)
			}
			f.take()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if f.mostBuilding != 3 || f.begun != 25 || f.building != 0 {
			t.Errorf("%d at once; %d begun, %d of them unfinished, want 20 and 5 ahead", f.mostBuilding, f.begun, f.building)
		}
	})
}

// TestQueueMemory: the values that are ahead fit into the memory given, but there is always one.
func TestQueueMemory(t *testing.T) {
	for size, want := range map[int64]int{1: 8, 10: 8, 20: 5, 30: 3, 100: 1, 1000: 1} {
		synctest.Test(t, func(t *testing.T) {
			f := &factory{fails: -1, times: slices.Repeat([]time.Duration{time.Millisecond}, 100)}
			o := f.options(4, 8)
			o.Bytes, o.Size = 100, func(int) int64 { return size }
			queue := load.NewQueue(o, f.next())
			for range 10 {
				time.Sleep(time.Second)
				f.take() // Next begins another value, maybe before it returns.
				if _, _, err := queue.Next(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			queue.Close()
			if f.mostAhead != want || len(f.dropped) != want {
				t.Errorf("values of %d bytes: %d ahead, %d dropped, want %d", size, f.mostAhead, len(f.dropped), want)
			}
		})
	}
}

// TestQueueGoroutineEnds: a builder that ends its goroutine is an error, not a queue that waits
// forever.
func TestQueueGoroutineEnds(t *testing.T) {
	queue := load.NewQueue(load.Options[int]{Workers: 2, Ahead: 2, Drop: func(int) {}}, func() (func() (int, error), bool) {
		return func() (int, error) { runtime.Goexit(); return 0, nil }, true
	})
	defer queue.Close()
	if _, ok, err := queue.Next(); !ok || err == nil || !strings.Contains(err.Error(), "runtime.Goexit") {
		t.Errorf("got %v, %v", ok, err)
	}
}

// TestLists: there is a value for each list of numbers, in order. Nothing is left if the user stops
// early: synctest fails on goroutines that never end.
func TestLists(t *testing.T) {
	for _, test := range []struct {
		begin, end, size, most int
		want                   string
	}{
		{3, 10, 3, 9, "[[3 4 5] [6 7 8] [9]]"}, {3, 9, 3, 9, "[[3 4 5] [6 7 8]]"}, {0, 2, math.MaxInt, 9, "[[0 1]]"}, {5, 5, 2, 9, "[]"}, {0, 9, 2, 2, "[[0 1] [2 3]]"},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := [][]int{}
			build := func(indices []int) ([]int, error) { return indices, nil }
			for indices, err := range load.Lists(load.Cut(test.begin, test.end, test.size), load.Options[[]int]{Workers: 2, Drop: func([]int) {}}, build) {
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, indices); len(got) == test.most {
					break
				}
			}
			if fmt.Sprint(got) != test.want {
				t.Errorf("%+v: got %v", test, got)
			}
		})
	}
}
