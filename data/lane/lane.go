package lane

import (
	"fmt"
	"iter"
	"math/rand/v2"

	"gonbatch/data"
	"gonbatch/data/shuffle"
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

// Lane reads its part of a stream. It has one user at a time.
type Lane struct {
	stream data.Stream
	config Config
	at     Position // Of the block.
	end    Position // After the block: Pass, Turn and Skip.
	block  []any
	turns  []int // The parts of this pass.
	next   func() (any, error, bool)
	stop   func()
	seen   bool // This pass has had an example.
	empty  int  // Passes without one.
}

// mostEmpty is the number of passes without any example after which a lane gives up. With a few
// parts, most of them empty, a lane may by chance have none of the others in several passes.
const mostEmpty = 100

// New returns a lane that goes on at a position.
func New(s data.Stream, c Config, at Position) *Lane {
	return &Lane{stream: s, config: c, at: at, end: at}
}

// Position returns where the lane is: New with it yields the examples that Next would.
func (l *Lane) Position() Position { return l.at }

// Close ends the reading.
func (l *Lane) Close() {
	if l.stop != nil {
		l.stop()
		l.stop = nil
	}
}

// Next returns the next example. There is always one: a stream that ends is read again. After an
// error, the lane is of no use.
func (l *Lane) Next() (any, error) {
	for l.at.Used >= len(l.block) {
		if len(l.block) > 0 {
			l.at = Position{Lane: l.at.Lane, Pass: l.end.Pass, Turn: l.end.Turn, Skip: l.end.Skip, Block: l.at.Block + 1}
		}
		if err := l.fill(); err != nil {
			return nil, err
		}
	}
	example := l.block[l.at.Used]
	l.block[l.at.Used] = nil // It must not stay in memory.
	l.at.Used++
	return example, nil
}

// fill reads a block and shuffles it.
func (l *Lane) fill() error {
	l.block = l.block[:0]
	for len(l.block) < max(1, l.config.Block) {
		example, err := l.read()
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
func (l *Lane) read() (any, error) {
	for {
		if l.stop == nil {
			if err := l.open(); err != nil {
				return nil, err
			}
		}
		example, err, ok := l.next()
		if err != nil {
			return nil, fmt.Errorf("part %d, pass %d, example %d: %w", l.part(), l.end.Pass, l.end.Skip, err)
		}
		if !ok {
			l.Close()
			l.end.Turn, l.end.Skip = l.end.Turn+1, 0
			continue
		}
		l.end.Skip++
		if l.isMine(l.end.Skip - 1) {
			l.seen = true
			return example, nil
		}
	}
}

// open opens the part at which the lane is, or the first one of the next pass.
func (l *Lane) open() error {
	if l.turns == nil {
		l.turns = l.parts(l.end.Pass)
	}
	if l.end.Turn >= len(l.turns) {
		if l.empty++; l.seen {
			l.empty = 0
		}
		if l.empty == mostEmpty {
			return fmt.Errorf("%d passes over the stream have no examples for lane %d of %d", l.empty, l.at.Lane, l.config.Lanes)
		}
		l.end.Pass, l.end.Turn, l.seen = l.end.Pass+1, 0, false
		l.turns = l.parts(l.end.Pass)
	}
	l.next, l.stop = iter.Pull2(l.stream.Read(l.part(), l.end.Pass, l.end.Skip))
	return nil
}

func (l *Lane) part() int { return l.turns[l.end.Turn] }

// parts returns the parts of the lane in a pass. Each part is some lane's.
func (l *Lane) parts(pass int) (mine []int) {
	n := l.stream.Parts()
	if n < l.config.Lanes {
		return []int{l.at.Lane % n}
	}
	order := shuffle.Sorted()
	if l.config.Block > 0 {
		order = shuffle.Random(n, l.config.Seed, partStream+uint64(pass))
	}
	for i := l.at.Lane; i < n; i += l.config.Lanes {
		mine = append(mine, order.At(i))
	}
	return mine
}

// partStream makes the order of parts differ from that of any block.
const partStream = 1 << 63

// isMine reports whether an example of a part is this lane's. Lanes that share a part take turns.
func (l *Lane) isMine(example int) bool {
	n := l.stream.Parts()
	if n >= l.config.Lanes {
		return true
	}
	sharing := (l.config.Lanes-1-l.at.Lane%n)/n + 1
	return example%sharing == l.at.Lane/n
}
