package lane

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strconv"

	"gonbatch/internal/plural"

	"gonbatch/data"
)

// Config is the same for all lanes of a stream.
type Config struct {
	// Lanes is the number of lanes. Without more parts than lanes, some lanes share a part.
	Lanes int
	// Block is the number of examples of a lane that are shuffled. 0: none, and the parts are in
	// order too.
	Block int
	// Seed determines the order.
	Seed uint64
}

// Position is where a lane is. The zero value is its beginning.
type Position struct {
	Lane int `json:"lane"`
	// Pass is the pass over the stream in which the current block begins, Turn the number of parts
	// that the lane has finished in it, and Skip the number of examples before the block in the
	// part.
	Pass int `json:"pass"`
	Turn int `json:"turn"`
	Skip int `json:"skip"`
	// Block counts blocks, and Used is the number of examples of this one that were used.
	Block int `json:"block"`
	Used  int `json:"used"`
}

// Place is where an example is in a stream.
type Place struct{ Part, Pass, Number int }

// In describes the place for errors: example 17 of part "crawl-3.gz" (pass 0).
func (p Place) In(s data.Stream) string {
	part := fmt.Sprint(p.Part)
	if s, ok := s.(data.NamedParts); ok {
		part = strconv.Quote(s.PartName(p.Part))
	}
	return fmt.Sprintf("example %d of part %s (pass %d)", p.Number, part, p.Pass)
}

// placed is an example and its place.
type placed struct {
	example any
	place   Place
}

// Lane reads its part of a stream. It has one user at a time.
type Lane struct {
	stream data.Stream
	config Config
	at     Position // Of the block.
	end    Position // After the block: Pass, Turn and Skip.
	block  []placed
	place  Place  // Of the example that Next returned last.
	turns  *turns // Of this pass; nil before the first part.
	next   func() (any, error, bool)
	stop   func()
	seen   bool  // This pass has had an example.
	found  int   // The part in which notEmpty found the last example.
	failed error // What Next returns from now on.
}

// New returns a lane that goes on at a position.
func New(s data.Stream, c Config, at Position) *Lane {
	return &Lane{stream: s, config: c, at: at, end: at}
}

// Position returns where the lane is: New with it yields the examples that Next would.
func (l *Lane) Position() Position { return l.at }

// Place returns where the example is that Next returned last.
func (l *Lane) Place() Place { return l.place }

// Close ends the reading.
func (l *Lane) Close() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// Next returns the next example. A stream that ends is read again, so there is always one, unless a
// whole pass over the stream has no example for any lane: then all lanes return an error, after
// their last example. An error of the stream is returned at once. The lane is of no use then, but
// its Position is: no example after it was returned.
func (l *Lane) Next() (any, error) {
	for l.failed == nil && l.at.Used >= len(l.block) {
		if len(l.block) > 0 {
			l.at = Position{Lane: l.at.Lane, Pass: l.end.Pass, Turn: l.end.Turn, Skip: l.end.Skip, Block: l.at.Block + 1}
		}
		l.failed = l.fill()
	}
	if l.failed != nil {
		return nil, l.failed
	}
	next := &l.block[l.at.Used]
	example := next.example
	l.place, next.example = next.place, nil // It must not stay in memory.
	l.at.Used++
	return example, nil
}

// fill reads a block and shuffles it. The last block before the end of the stream may be short.
func (l *Lane) fill() error {
	l.block = l.block[:0]
	for len(l.block) < max(1, l.config.Block) {
		example, err := l.read()
		if errors.Is(err, errEmpty) && len(l.block) > 0 {
			break // The next block begins with the error.
		}
		if err != nil {
			return err
		}
		l.block = append(l.block, example)
	}
	if l.config.Block > 0 {
		random := rand.New(rand.NewPCG(l.config.Seed, uint64(l.at.Lane)<<40+uint64(l.at.Block)))
		random.Shuffle(len(l.block), func(i, j int) { l.block[i], l.block[j] = l.block[j], l.block[i] })
	}
	return nil
}

// read reads the lane's next example.
func (l *Lane) read() (p placed, err error) {
	for {
		if l.stop == nil {
			if err := l.open(); err != nil {
				return p, err
			}
		}
		p.place = Place{l.part(), l.end.Pass, l.end.Skip}
		var ok bool
		if p.example, ok, err = l.pull(); err != nil {
			return p, fmt.Errorf("%s: %w", p.place.In(l.stream), err)
		}
		if !ok {
			l.Close()
			l.end.Turn, l.end.Skip = l.end.Turn+1, 0
			continue
		}
		l.end.Skip++
		if l.turns.has(l.end.Skip - 1) {
			l.seen = true
			return p, nil
		}
	}
}

// pull takes an example out of the stream, and makes an error of a panic.
func (l *Lane) pull() (example any, ok bool, err error) {
	defer recovered(&err)
	example, err, ok = l.next()
	return example, ok, err
}

// recovered makes an error of a panic.
func recovered(err *error) {
	if value := recover(); value != nil {
		*err = fmt.Errorf("panic: %v", value)
	}
}

// open opens the part at which the lane is, or the first one of the next pass.
func (l *Lane) open() error {
	if l.turns == nil {
		l.turns = l.config.turns(l.at.Lane, l.stream.Parts(), l.end.Pass)
	}
	if l.end.Turn >= len(l.turns.parts) {
		if err := l.endPass(); err != nil {
			return err
		}
	}
	part, pass, skip := l.part(), l.end.Pass, l.end.Skip
	l.next, l.stop = iter.Pull2(func(yield func(any, error) bool) { l.stream.Read(part, pass, skip)(yield) }) // Read itself may panic.
	return nil
}

func (l *Lane) part() int { return l.turns.parts[l.end.Turn] }

// endPass goes to the next pass, unless this one has no example for any lane. A lane without an
// example of its own looks into the parts of the others: it may have some in another pass.
func (l *Lane) endPass() error {
	if !l.seen {
		if err := l.notEmpty(l.end.Pass); err != nil {
			return err
		}
	}
	l.end.Pass, l.end.Turn, l.seen = l.end.Pass+1, 0, false
	l.turns = l.config.turns(l.at.Lane, l.stream.Parts(), l.end.Pass)
	return nil
}

// errEmpty begins the errors about a pass over a stream that has no examples.
var errEmpty = errors.New("the stream has no")

// notEmpty returns an error unless a part has an example in a pass. It begins with the part in
// which it found the last one.
func (l *Lane) notEmpty(pass int) error {
	n := l.stream.Parts()
	for i := range n {
		part := (l.found + i) % n
		has, err := l.has(part, pass)
		if err != nil {
			return fmt.Errorf("%s: %w", Place{part, pass, 0}.In(l.stream), err)
		}
		if has {
			l.found = part
			return nil
		}
	}
	if pass == 0 {
		return fmt.Errorf("%w examples: Read yields none in its %s", errEmpty, plural.Of(n, "part"))
	}
	return fmt.Errorf("%w more examples: Read yields none in its %s in pass %d, counted from 0: let it yield some in each pass, or train on fewer", errEmpty, plural.Of(n, "part"), pass)
}

// has reports whether a part has an example in a pass.
func (l *Lane) has(part, pass int) (has bool, err error) {
	defer recovered(&err)
	for _, err := range l.stream.Read(part, pass, 0) {
		return err == nil, err
	}
	return false, nil
}
