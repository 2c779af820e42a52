package tarset

import (
	"bytes"
	"errors"
	"io"

	"gonbatch/data/compressed"
)

// reader reads the samples of a shard in order.
type reader struct {
	walker
	shard  string
	skip   int    // Samples that are still to be skipped.
	last   string // The key of the newest sample.
	sample *Sample
	failed error // Comes after the newest sample.
}

func newReader(shard string, c *content, from io.Reader, skip int) *reader {
	return &reader{walker: newWalker(c, from), shard: shard, skip: skip}
}

// next returns the next sample; io.EOF at the end of the shard. A sample is complete when another
// one begins, or the shard ends well.
func (r *reader) next() (*Sample, error) {
	for r.failed == nil {
		m, err := r.walker.next()
		var complete *Sample
		if m.begins || errors.Is(err, io.EOF) || err != nil && m.key != "" && m.key != r.last {
			complete = r.take()
		}
		if m.begins {
			r.last, r.sample = m.key, &Sample{Key: m.key, Shard: r.shard}
		}
		if r.failed = err; err == nil && r.skip == 0 {
			r.failed = r.read(m)
		}
		if complete != nil {
			return complete, nil
		}
	}
	return nil, r.failed
}

// take takes the complete sample; nil if there is none, or it is skipped.
func (r *reader) take() *Sample {
	complete := r.sample
	r.sample = nil
	if complete != nil && r.skip > 0 {
		r.skip--
		return nil
	}
	return complete
}

// read reads the content of a member of the sample.
func (r *reader) read(m member) error {
	content, err := readAll(r.members, m.size)
	if err != nil {
		return compressed.Explain(err)
	}
	r.sample.extensions, r.sample.contents = append(r.sample.extensions, m.extension), append(r.sample.contents, content)
	return nil
}

// onlyZeros reads the rest of a shard.
func onlyZeros(rest io.Reader) error {
	for buffer := make([]byte, block); ; {
		n, err := rest.Read(buffer)
		if len(bytes.Trim(buffer[:n], "\x00")) > 0 {
			return errors.New("there is something after tar's mark of the end: keep tar files apart, instead of concatenating them")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return compressed.Explain(err)
		}
	}
}

// atOnce limits the memory that is allocated for a size which may be wrong.
const atOnce = 64 << 20

// readAll reads the content of a member.
func readAll(member io.Reader, size int64) ([]byte, error) {
	if size <= atOnce {
		content := make([]byte, size)
		_, err := io.ReadFull(member, content)
		return content, err
	}
	return io.ReadAll(member)
}
