package tarset

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
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
