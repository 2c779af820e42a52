package tarset

import (
	"os"
	"sync"

	"gonbatch/data/files"
)

// mostOpen is the number of shards that stay open.
const mostOpen = 256

// pool has the shards that are open. It may be used concurrently.
type pool struct {
	files []files.File
	mu    sync.Mutex
	open  map[int]*shard
}

// shard is an open shard, or one that is being opened.
type shard struct {
	once  sync.Once
	file  *os.File
	err   error
	users int
}

func newPool(list []files.File) *pool { return &pool{files: list, open: map[int]*shard{}} }

// read reads a part of a shard.
func (p *pool) read(number int, begin, end int64) ([]byte, error) {
	s := p.take(number)
	defer p.release(number, s)
	s.once.Do(func() { s.file, s.err = p.files[number].Open() })
	if s.err != nil {
		return nil, s.err
	}
	content := make([]byte, end-begin)
	_, err := s.file.ReadAt(content, begin)
	return content, err
}

func (p *pool) take(number int) *shard {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.open[number]
	if s == nil {
		p.makeRoom()
		s = &shard{}
		p.open[number] = s
	}
	s.users++
	return s
}

// makeRoom closes a shard, if there are too many. One that is in use stays open.
func (p *pool) makeRoom() {
	if len(p.open) < mostOpen {
		return
	}
	for number, s := range p.open {
		if s.users == 0 {
			delete(p.open, number)
			_ = s.file.Close() // It was only read.
			return
		}
	}
}

// release forgets a shard that can't be opened, so that it is tried again.
func (p *pool) release(number int, s *shard) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	if s.err != nil && p.open[number] == s {
		delete(p.open, number)
	}
}
