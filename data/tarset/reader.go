package tarset

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"

	"gonbatch/data/compressed"
)

// reader reads the samples of a shard in order.
type reader struct {
	shard   string
	content *content
	members *tar.Reader
	keys    *keys
	skip    int    // Samples that are still to be skipped.
	last    string // The key of the newest sample.
	sample  *Sample
	end     int64 // Of the newest member.
	failed  error // Comes after the newest sample.
}

func newReader(shard string, c *content, from io.Reader, skip int) *reader {
	return &reader{shard: shard, content: c, members: tar.NewReader(from), keys: newKeys(), skip: skip}
}

// next returns the next sample; io.EOF at the end of the shard. A sample is complete when another
// one begins, or the shard ends well.
func (r *reader) next() (*Sample, error) {
	for {
		if r.failed != nil {
			return nil, r.failed
		}
		head, err := r.members.Next()
		if errors.Is(err, io.EOF) {
			return r.finish()
		}
		if err != nil {
			return nil, compressed.Explain(err)
		}
		if err := refuse(head); err != nil {
			return nil, err
		}
		r.end = (r.content.read + contentSize(head) + block - 1) / block * block
		complete, err := r.add(head)
		if complete != nil || err != nil {
			return complete, err
		}
	}
}

// add adds a member. It returns the sample before, if another one begins.
func (r *reader) add(head *tar.Header) (complete *Sample, err error) {
	key, extension, ok := split(head)
	if !ok {
		return nil, nil
	}
	begins, err := r.keys.add(key, extension)
	if err != nil {
		if r.failed = err; key == r.last {
			return nil, err
		}
		return r.take(), nil
	}
	if begins {
		complete = r.take()
		r.last, r.sample = key, &Sample{Key: key, Shard: r.shard}
	}
	if r.skip > 0 {
		return complete, nil
	}
	content, err := readAll(r.members, head.Size)
	if err != nil {
		r.failed = compressed.Explain(err)
		return complete, nil
	}
	r.sample.extensions, r.sample.contents = append(r.sample.extensions, extension), append(r.sample.contents, content)
	return complete, nil
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

// finish returns the last sample, if the shard has its end, and io.EOF after it. Reading up to the
// end compares the checksum of a compressed file.
func (r *reader) finish() (*Sample, error) {
	if r.sample == nil && r.last != "" {
		return nil, io.EOF
	}
	if !r.content.ended(r.end) {
		return nil, compressed.ErrTruncated
	}
	if err := onlyZeros(r.content); err != nil {
		return nil, err
	}
	if complete := r.take(); complete != nil {
		return complete, nil
	}
	return nil, io.EOF
}

// onlyZeros reads the rest of a shard.
func onlyZeros(rest io.Reader) error {
	for buffer := make([]byte, 64<<10); ; {
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
