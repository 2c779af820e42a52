package distributed

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/data"
	"gonbatch/data/lane"
	"gonbatch/data/load"
	"gonbatch/internal/plural"
)

// StreamPosition is where a training run is in a stream.
type StreamPosition struct {
	// Lanes and Block are those of the lanes: see lane.Config.
	Lanes int `json:"lanes"`
	Block int `json:"block"`
	// At has the positions of some of the lanes.
	At []lane.Position `json:"at"`
}

// streamLoader returns the loader of a stream. Each lane has the same part of every batch, and each
// rank has lanes of its own, one after the other.
func (w *World) streamLoader(s *data.Streamed, o LoaderOptions) (Loader, error) {
	if o.ModelParallel <= 1 {
		if err := w.fitLanes(s.Config.Lanes); err != nil {
			return nil, err
		}
	}
	m, err := w.meshFor(o.ModelParallel)
	if err != nil {
		return nil, fmt.Errorf("distributed: load the stream %s: %w", s.Name(), err)
	}
	lanes, err := lanesOf(s, o.BatchSize, w.rows(o.ModelParallel))
	err = w.explainRows(err, o, s.Config.Lanes)
	if s.Len() < o.BatchSize {
		err = errors.Join(err, fmt.Errorf("an epoch of %s is less than one batch of %d", plural.Of(s.Len(), "example"), o.BatchSize))
	}
	if err := errors.Join(err, o.check()); err != nil {
		return nil, fmt.Errorf("distributed: load the stream %s: %w", s.Name(), err)
	}
	w.busy.Store(true)
	config := lane.Config{Lanes: lanes, Seed: o.Seed}
	if o.Shuffle {
		config.Block = max(1, s.Config.Buffer/lanes)
	}
	if w.devices == 1 {
		return hostLoader{&streamed[train.Batch]{world: w, data: s, options: o, config: config, place: w.onDevice}, w}, nil
	}
	return deviceLoader{&streamed[train.DistributedBatch]{world: w, data: s, options: o, config: config, place: w.sharded(m)}, w}, nil
}

// lanesOf returns the number of lanes. By default, it depends on the number of shards only if they
// need another one.
func lanesOf(s *data.Streamed, batchSize, shards int) (int, error) {
	if batchSize < 1 || batchSize%shards != 0 {
		return 0, fmt.Errorf("the batch size of %d can't be divided evenly over %s (ranks and devices)", batchSize, plural.Of(shards, "shard"))
	}
	lanes := s.Config.Lanes
	if lanes > 0 && (batchSize%lanes != 0 || lanes%shards != 0) {
		return 0, fmt.Errorf("%d lanes: their number must divide the batch size of %d, and be a multiple of the number of ranks and devices, %d", lanes, batchSize, shards)
	}
	if lanes > 0 {
		return lanes, nil
	}
	for lanes = min(s.Parts(), batchSize); lanes > shards; lanes-- {
		if batchSize%lanes == 0 && lanes%shards == 0 {
			return lanes, nil
		}
	}
	return shards, nil
}

// streamed yields batches of the lanes of this process.
type streamed[B batch] struct {
	world   *World
	data    *data.Streamed
	options LoaderOptions
	config  lane.Config
	place   placement[B]
	next    int             // The batch at which the next iteration begins, counted over all epochs.
	done    int             // Batches that were yielded.
	at      []lane.Position // After them; nil at the beginning of the stream.
	queue   *load.Queue[placed[B]]
	lanes   []*lane.Lane
}

// placed is a batch, and where the lanes are after it.
type placed[B batch] struct {
	batch B
	at    []lane.Position
}

func (l *streamed[B]) Name() string         { return l.data.Name() }
func (l *streamed[B]) BatchSize() int       { return l.options.BatchSize }
func (l *streamed[B]) Seek(epoch, step int) { l.next = epoch*l.Steps() + step }

func (l *streamed[B]) Steps() int {
	steps := l.data.Len() / l.options.BatchSize
	if l.options.Limit > 0 {
		return min(steps, l.options.Limit)
	}
	return steps
}

// Position implements Loader.
func (l *streamed[B]) Position() *StreamPosition {
	return &StreamPosition{l.config.Lanes, l.config.Block, slices.Clone(l.at)}
}

// Resume implements Loader.
func (l *streamed[B]) Resume(epoch, step int, at *StreamPosition) error {
	l.Close()
	l.Seek(epoch, step)
	l.done, l.at = l.next, nil
	if at == nil || len(at.At) == 0 {
		return nil
	}
	if at.Lanes != l.config.Lanes || at.Block != l.config.Block {
		return fmt.Errorf("distributed: the stream %s was read in %d lanes with a buffer of %d each, now these are %d and %d: use the same, by the Lanes and the Buffer of data.StreamConfig and shuffle, or the same number of ranks", l.Name(), at.Lanes, at.Block, l.config.Lanes, l.config.Block)
	}
	for number := range l.mine() {
		i := slices.IndexFunc(at.At, func(p lane.Position) bool { return p.Lane == number })
		if i < 0 {
			return fmt.Errorf("distributed: the stream %s: there is no position of lane %d", l.Name(), number)
		}
		l.at = append(l.at, at.At[i])
	}
	return nil
}

// mine yields the numbers of this rank's lanes.
func (l *streamed[B]) mine() iter.Seq[int] {
	each := l.config.Lanes / l.world.Size()
	return func(yield func(int) bool) {
		for i := range each {
			if !yield(l.world.Rank()*each + i) {
				return
			}
		}
	}
}

// Close implements Loader. A later iteration reads the block again in which each lane is.
func (l *streamed[B]) Close() {
	if l.queue != nil {
		l.queue.Close()
	}
	for _, lane := range l.lanes {
		lane.Close()
	}
	l.queue, l.lanes = nil, nil
}

func (l *streamed[B]) iterate() iter.Seq2[B, error] {
	begin := l.next
	end := (begin/l.Steps() + 1) * l.Steps()
	l.next = end
	return func(yield func(B, error) bool) {
		l.world.forecaster.begins(l.BatchSize(), l.data.Len())
		if begin != l.done {
			var none B
			yield(none, fmt.Errorf("distributed: the stream %s is at batch %d, and can't go to batch %d", l.Name(), l.done, begin))
			return
		}
		if l.queue == nil {
			l.start()
		}
		if !l.yield(end, yield) || l.options.Epochs == 0 {
			l.Close()
		}
	}
}

// yield yields the batches up to the end of an epoch, or the first error, and reports whether there
// was none.
func (l *streamed[B]) yield(end int, yield func(B, error) bool) bool {
	for l.done < end {
		value, ok, err := l.queue.Next()
		if err == nil && !ok {
			err = fmt.Errorf("distributed: the stream %s: the training has no more epochs than %d", l.Name(), l.options.Epochs)
		}
		if err == nil {
			l.done++
			l.at = value.at
		}
		if !yield(value.batch, err) || err != nil {
			return err == nil
		}
	}
	return true
}

// start begins to read where the lanes are.
func (l *streamed[B]) start() {
	l.lanes = nil
	for number := range l.mine() {
		at := lane.Position{Lane: number}
		if l.at != nil {
			at = l.at[len(l.lanes)]
		}
		l.lanes = append(l.lanes, lane.New(l.data.Stream, l.config, at))
	}
	begun, end := l.done, math.MaxInt
	if epochs := l.options.Epochs; epochs > 0 && epochs <= math.MaxInt/l.Steps() {
		end = max(epochs*l.Steps(), l.next)
	}
	r := &reading[B]{streamed: l, lanes: l.lanes, turn: make(chan struct{})}
	close(r.turn)
	of := loadOptions[B](l.world, l.options.Loading)
	l.queue = load.NewQueue(load.Options[placed[B]]{
		Workers: of.Workers, Ahead: of.Ahead, Size: func(p placed[B]) int64 { return of.Size(p.batch) }, Drop: func(p placed[B]) { of.Drop(p.batch) },
	}, func() (func() (placed[B], error), bool) {
		if begun >= end {
			return nil, false
		}
		begun++
		return r.begin(), true
	})
}

// reading reads the examples of one batch after the other, while several are decoded.
type reading[B batch] struct {
	*streamed[B]
	lanes []*lane.Lane
	turn  chan struct{} // Closed when the batch before has been read.
	err   error         // Of the first batch that can't be read.
}

// begin returns the function that loads the next batch.
func (r *reading[B]) begin() func() (placed[B], error) {
	before, mine := r.turn, make(chan struct{})
	r.turn = mine
	return func() (p placed[B], err error) {
		<-before
		began := time.Now()
		examples, places, at, err := r.read(mine)
		if err != nil {
			return p, fmt.Errorf("distributed: load the stream %s: %w", r.Name(), err)
		}
		inputs, labels, err := load.Examples(r.data.Stream, examples, func(i int) string { return places[i].In(r.data.Stream) }, r.options.Check)
		if err == nil {
			p.at = at
			began = r.options.observe(LoadPhase, began)
			p.batch, err = r.place(train.Batch{Inputs: inputs, Labels: labels})
			r.options.observe(TransferPhase, began)
		}
		if err != nil {
			return p, fmt.Errorf("distributed: %w", err)
		}
		return p, nil
	}
}

// read reads the examples of a batch, and closes done. After an error it reads nothing.
func (r *reading[B]) read(done chan struct{}) (examples []any, places []lane.Place, at []lane.Position, err error) {
	defer close(done)
	if r.err != nil {
		return nil, nil, nil, r.err
	}
	defer func() {
		if value := recover(); value != nil { // Of the stream's other methods: the lane names the part.
			err = fmt.Errorf("panic: %v", value)
		}
		r.err = err
	}()
	for _, lane := range r.lanes {
		for range r.options.BatchSize / r.config.Lanes {
			example, err := lane.Next()
			if err != nil {
				return nil, nil, nil, err
			}
			examples, places = append(examples, example), append(places, lane.Place())
		}
		at = append(at, lane.Position())
	}
	return examples, places, at, nil
}
