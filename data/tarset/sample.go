package tarset

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
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

// parse reads the part of a shard that has a sample.
func parse(shard string, part []byte) (*Sample, error) {
	s := &Sample{Shard: shard}
	members := tar.NewReader(bytes.NewReader(part))
	for {
		head, err := members.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		key, extension, ok := split(head)
		if !ok {
			continue
		}
		if s.Key != key && len(s.contents) > 0 {
			return nil, fmt.Errorf("there is %q within the sample %q", key, s.Key)
		}
		if head.Size > int64(len(part)) {
			return nil, fmt.Errorf("%s has %d bytes, but the sample only %d", head.Name, head.Size, len(part))
		}
		content := make([]byte, head.Size)
		if _, err := io.ReadFull(members, content); err != nil {
			return nil, err
		}
		s.Key, s.extensions, s.contents = key, append(s.extensions, extension), append(s.contents, content)
	}
	if len(s.contents) == 0 {
		return nil, errors.New("there is no sample")
	}
	return s, nil
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
	key   string
	names map[string]bool // Extensions of the sample; nil before the first one.
	seed  maphash.Seed
	seen  map[uint64]bool // Hashes of keys.
}

func newKeys() *keys { return &keys{seed: maphash.MakeSeed(), seen: map[uint64]bool{}} }

// add adds a member, and reports whether a sample begins with it.
func (k *keys) add(key, extension string) (begins bool, err error) {
	if begins = key != k.key || k.names == nil; begins {
		hash := maphash.String(k.seed, key)
		if k.seen[hash] {
			return false, fmt.Errorf("the sample %q has begun earlier in the file: the members of a sample must be next to each other: make the tar file with --sort=name", key)
		}
		k.seen[hash] = true
		k.key, k.names = key, map[string]bool{}
	}
	if k.names[extension] {
		return false, fmt.Errorf("the sample %q has two members .%s", key, extension)
	}
	k.names[extension] = true
	return begins, nil
}
