package tarset

import (
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"strings"
)

// Sample has the members of an example.
type Sample struct {
	// Key is the name of the members, up to the first dot: n01/0001.
	Key string
	// Shard is the path of the tar file.
	Shard string

	extensions []string
	contents   [][]byte
}

// parse reads a shard that has one sample.
func parse(shard string, part []byte) (*Sample, error) {
	from := &content{from: bytes.NewReader(part)}
	r := newReader(shard, from, from, 0)
	s, err := r.next()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("there is no sample")
	}
	if err == nil {
		if _, err = r.next(); errors.Is(err, io.EOF) {
			return s, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("there is %q within the sample %q", r.last, s.Key)
	}
	return nil, err
}

// Extensions returns the extensions of the members, such as jpg and cls, in the order of the shard.
func (s *Sample) Extensions() []string { return s.extensions }

// Bytes returns the content of the member with an extension, or with the first of several that the
// sample has.
func (s *Sample) Bytes(extensions ...string) ([]byte, error) {
	_, content, err := s.find(extensions)
	return content, err
}

func (s *Sample) find(extensions []string) (found string, content []byte, err error) {
	for _, wanted := range extensions {
		for i, extension := range s.extensions {
			if extension == wanted {
				return extension, s.contents[i], nil
			}
		}
	}
	return "", nil, fmt.Errorf("it has no member .%s, only .%s", strings.Join(extensions, " or ."), strings.Join(s.extensions, ", ."))
}

// keys follows the members of a shard, in order, and refuses those that are in no order.
type keys struct {
	key        string
	extensions []string // Of the sample; none before the first one.
	seed       maphash.Seed
	seen       map[uint64]bool // Hashes of keys.
}

// add adds a member, and reports whether a sample begins with it.
func (k *keys) add(key, extension string) (begins bool, err error) {
	if begins = key != k.key || len(k.extensions) == 0; begins {
		hash := maphash.String(k.seed, key)
		if k.seen[hash] {
			return false, fmt.Errorf("the sample %q has begun earlier in the file: the members of a sample must be next to each other: make the tar file with --sort=name", key)
		}
		k.seen[hash] = true
		k.key, k.extensions = key, k.extensions[:0]
	}
	if slices.Contains(k.extensions, extension) {
		return false, fmt.Errorf("the sample %q has two members .%s", key, extension)
	}
	k.extensions = append(k.extensions, extension)
	return begins, nil
}
