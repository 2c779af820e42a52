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

// shard is an open shard.
type shard struct {
	*os.File
	users int
}

// read reads a part of a shard, and tar's mark of the end after it.
func (p *pool) read(number int, begin, end int64) ([]byte, error) {
	s, err := p.take(number)
	if err != nil {
		return nil, err
	}
	content := make([]byte, end-begin+2*block)
	_, err = s.ReadAt(content[:end-begin], begin)
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	return content, err
}

// take returns an open shard. If there are too many, it closes others that are not in use.
func (p *pool) take(number int) (*shard, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[number] == nil {
		p.mu.Unlock()
		file, err := p.files[number].Open()
		p.mu.Lock()
		if err != nil {
			return nil, err
		}
		for other, s := range p.open {
			if len(p.open) >= mostOpen && s.users == 0 {
				delete(p.open, other)
				_ = s.Close() // It was only read.
			}
		}
		if p.open[number] == nil {
			p.open[number] = &shard{File: file}
		} else { // Another goroutine was faster.
			_ = file.Close()
		}
	}
	p.open[number].users++
	return p.open[number], nil
}
