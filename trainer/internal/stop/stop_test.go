package stop

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// ballot sums the values of ranks that are goroutines of this process.
type ballot struct {
	mu      sync.Mutex
	changed *sync.Cond
	size    int
	came    int
	sums    [][]float64 // Of the collectives so far.
}

func newBallot(size int) *ballot {
	b := &ballot{size: size}
	b.changed = sync.NewCond(&b.mu)
	return b
}

// voter is a rank at a ballot.
type voter struct {
	*ballot
	rank, calls int
}

func (v *voter) Size() int    { return v.size }
func (v *voter) IsMain() bool { return v.rank == 0 }

func (v *voter) AllReduceSum(values []float64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	round := v.calls
	v.calls++
	if round == len(v.sums) {
		v.sums = append(v.sums, make([]float64, len(values)))
		v.came = 0
	}
	sum := v.sums[round]
	for i, value := range values {
		sum[i] += value
	}
	if v.came++; v.came == v.size {
		v.changed.Broadcast()
	}
	for v.came < v.size && len(v.sums) == round+1 {
		v.changed.Wait()
	}
	copy(values, sum)
	return nil
}

// voting is a training run of some ranks, in simulated time.
type voting struct {
	ranks   int
	updates int64
	took    func(step int64) time.Duration // The time of an update.
	told    int                            // The rank that is told to stop; -1 if none is.
	at      time.Duration                  // When.
	maxTime time.Duration                  // 0 if there is no limit.
}

// endedVote is how a rank's training run ended.
type endedVote struct {
	step  int64
	after time.Duration
	cause int32
	votes int
}

// run trains all ranks, and returns how each ended.
func (v voting) run(t *testing.T) []endedVote {
	t.Helper()
	all := make([]endedVote, v.ranks)
	shared := newBallot(v.ranks)
	var group sync.WaitGroup
	for rank := range v.ranks {
		group.Go(func() {
			me := &voter{ballot: shared, rank: rank}
			offset := time.Duration(rank) * time.Hour // Clocks need not agree.
			clock := offset
			s := New(context.Background(), me, 0, func() time.Time { return time.Time{}.Add(clock) })
			defer s.Close()
			for step := int64(1); step <= v.updates; step++ {
				clock += v.took(step)
				passed, due := clock-offset, time.Duration(math.MaxInt64)
				if rank == v.told && passed >= v.at {
					s.Tell(Terminated)
				}
				if v.maxTime > 0 {
					due = v.maxTime - passed
				}
				if due <= 0 && me.IsMain() {
					s.Tell(TimeIsUp)
				}
				cause, _, err := s.Agreed(step, false, due)
				if err != nil {
					t.Error(err)
				}
				all[rank] = endedVote{step, passed, cause, me.calls}
				if cause != GoOn {
					return
				}
			}
		})
	}
	group.Wait()
	for rank, e := range all {
		if e != all[0] {
			t.Errorf("rank %d ended as %+v, rank 0 as %+v", rank, e, all[0])
		}
	}
	return all
}

// TestVotes: the ranks vote about once a second, whatever an update takes.
func TestVotes(t *testing.T) {
	for _, took := range []time.Duration{time.Millisecond, 25 * time.Millisecond, 400 * time.Millisecond, 3 * time.Second} {
		t.Run(took.String(), func(t *testing.T) {
			const updates = 10_000
			v := voting{ranks: 3, updates: updates, took: func(int64) time.Duration { return took }, told: -1}
			got := v.run(t)[0]
			seconds := updates * took.Seconds()
			most := max(min(seconds, updates), updates/mostUpdates)
			if got.step != updates || got.cause != GoOn || float64(got.votes) > 1.3*most+2 || float64(got.votes) < 0.7*most {
				t.Errorf("%d votes in %d updates of %v, want about %.0f", got.votes, got.step, took, most)
			}
		})
	}
}

// TestStopTogether: whichever rank is told to stop, all ranks stop after the same update, at most 2
// seconds or one update later.
func TestStopTogether(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		mean := time.Duration(float64(time.Millisecond) * math.Pow(10, 4*random.Float64())) // 1 ms to 10 s.
		jitter := 0.5 * random.Float64()
		took := func(step int64) time.Duration { // The same on all ranks: they wait for one another.
			r := rand.New(rand.NewPCG(seed, uint64(step)))
			return time.Duration(float64(mean) * (1 + jitter*(2*r.Float64()-1)))
		}
		v := voting{ranks: 1 + random.IntN(5), updates: math.MaxInt64, took: took}
		v.told, v.at = random.IntN(v.ranks), time.Duration(random.Float64()*float64(200*mean))
		got := v.run(t)[0]
		if late := got.after - v.at; got.cause != Terminated || late < 0 || late > max(2*time.Second, 2*mean) {
			t.Errorf("seed %d, %d ranks, updates of %v, rank %d is told after %v: stopped for reason %d after %v", seed, v.ranks, mean, v.told, v.at, got.cause, got.after)
		}
	}
}

// TestStopAfterSlowing: a stop is noticed within few updates even if they suddenly take longer.
func TestStopAfterSlowing(t *testing.T) {
	took := func(step int64) time.Duration {
		if step > 1000 {
			return time.Second
		}
		return time.Millisecond
	}
	v := voting{ranks: 2, updates: math.MaxInt64, took: took, told: 1, at: 1001 * time.Millisecond}
	if got := v.run(t)[0]; got.cause != Terminated || got.step > 1000+mostUpdates {
		t.Errorf("stopped after step %d, want at most %d", got.step, 1000+mostUpdates)
	}
}

// TestMaxTimeOfRanks: the ranks end with the first update after max_time, or one of the next if
// updates take differently long.
func TestMaxTimeOfRanks(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		mean := time.Duration(float64(time.Millisecond) * math.Pow(10, 4*random.Float64()))
		jitter := 0.5 * random.Float64()
		took := func(step int64) time.Duration {
			r := rand.New(rand.NewPCG(seed, uint64(step)))
			return time.Duration(float64(mean) * (1 + jitter*(2*r.Float64()-1)))
		}
		v := voting{ranks: 1 + random.IntN(4), updates: math.MaxInt64, took: took, told: -1, maxTime: time.Duration((1 + 100*random.Float64()) * float64(mean))}
		got := v.run(t)[0]
		if late := got.after - v.maxTime; got.cause != TimeIsUp || late < 0 || late > 2*mean {
			t.Errorf("seed %d, %d ranks, updates of %v: ended for reason %d after %v, want %v", seed, v.ranks, mean, got.cause, got.after, v.maxTime)
		}
	}
}
