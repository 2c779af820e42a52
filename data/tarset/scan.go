package tarset

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"strings"

	"gonbatch/data/files"
)

// block is the unit of a tar file.
const block = 512

// scan returns where the samples of a shard begin, and where the last one ends.
func scan(f files.File) (offsets []int64, err error) {
	file, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	if err := checkFormat(file); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	s := scanner{file: io.NewSectionReader(file, 0, f.Size), seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
	if err := s.scan(); err != nil {
		return nil, fmt.Errorf("%s: byte %d: %w", f.Path, s.at, err)
	}
	return append(s.offsets, s.end), nil
}

// checkFormat refuses files that are often taken for tar files.
func checkFormat(file *os.File) error {
	begin := make([]byte, 4)
	n, err := file.ReadAt(begin, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch begin = begin[:n]; {
	case n == 0:
		return errors.New("it is empty, so it is no tar file")
	case bytes.HasPrefix(begin, []byte("\x1f\x8b")):
		return errors.New("it is compressed by gzip, so samples can't be read by number: unpack it with gunzip")
	case bytes.HasPrefix(begin, []byte("\x28\xb5\x2f\xfd")):
		return errors.New("it is compressed by zstd, so samples can't be read by number: unpack it with zstd -d")
	}
	return nil
}

// scanner finds the samples of a shard.
type scanner struct {
	file    *io.SectionReader
	at      int64 // Where the headers of the next member begin.
	end     int64 // Of the last sample.
	offsets []int64
	key     string
	names   map[string]bool // Extensions of the sample.
	seed    maphash.Seed
	seen    map[uint64]bool // Hashes of keys.
}

func (s *scanner) scan() error {
	members := tar.NewReader(s.file)
	for {
		head, err := members.Next()
		if errors.Is(err, io.EOF) {
			return s.checkEnd()
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("the file is truncated: it ends within a member, after %d bytes", s.file.Size())
		}
		if err != nil {
			return err
		}
		if isSparse(head) {
			return fmt.Errorf("%s is a sparse file: make the tar file without --sparse", head.Name)
		}
		begin := s.at
		if s.at, err = s.next(head); err != nil {
			return err
		}
		if key, extension, ok := split(head); ok {
			if err := s.add(key, extension, begin); err != nil {
				s.at = begin
				return err
			}
		}
	}
}

// next returns where the headers of the member after this one begin.
func (s *scanner) next(head *tar.Header) (int64, error) {
	content, err := s.file.Seek(0, io.SeekCurrent)
	switch head.Typeflag {
	case tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeDir, tar.TypeFifo:
	default:
		if head.Size > s.file.Size()-content {
			return 0, fmt.Errorf("the file is truncated: it has %d bytes, and %s ends at byte %d", s.file.Size(), head.Name, content+head.Size)
		}
		content += head.Size
	}
	return (content + block - 1) / block * block, err
}

// add adds a member, whose headers begin at a byte.
func (s *scanner) add(key, extension string, begin int64) error {
	if key != s.key || len(s.offsets) == 0 {
		hash := maphash.String(s.seed, key)
		if s.seen[hash] {
			return fmt.Errorf("the sample %q has begun earlier in the file: the members of a sample must be next to each other: make the tar file with --sort=name", key)
		}
		s.seen[hash] = true
		s.key, s.names = key, map[string]bool{}
		s.offsets = append(s.offsets, begin)
	}
	if s.names[extension] {
		return fmt.Errorf("the sample %q has two members .%s", key, extension)
	}
	s.names[extension] = true
	s.end = s.at
	return nil
}

// checkEnd refuses a file that has no end, or something after it: samples would be missing.
func (s *scanner) checkEnd() error {
	if s.file.Size() < s.at+block {
		return errors.New("the file is truncated: tar's mark of the end is missing")
	}
	if _, err := s.file.Seek(s.at, io.SeekStart); err != nil {
		return err
	}
	for buffer := make([]byte, 64<<10); ; {
		n, err := s.file.Read(buffer)
		if len(bytes.Trim(buffer[:n], "\x00")) > 0 {
			return errors.New("there is something after tar's mark of the end: keep tar files apart, instead of concatenating them")
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// isSparse reports whether a member has holes, so that it is smaller in the tar file.
func isSparse(head *tar.Header) bool {
	for name := range head.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return head.Typeflag == tar.TypeGNUSparse
}

// split splits the name of a member at the first dot after the last slash. As in WebDataset, the
// extension is in lower case, and a member without a key or an extension, or with a name such as
// __meta.x__, belongs to no sample.
func split(head *tar.Header) (key, extension string, ok bool) {
	if head.Typeflag != tar.TypeReg || strings.HasPrefix(head.Name, "__") && strings.HasSuffix(head.Name, "__") {
		return "", "", false
	}
	slash := strings.LastIndex(head.Name, "/") + 1
	base, extension, ok := strings.Cut(head.Name[slash:], ".")
	return head.Name[:slash] + base, strings.ToLower(extension), ok && base != ""
}
