package tarset

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"gonbatch/data/compressed"
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
	if err := checkFormat(file, f.Size); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	s := scanner{file: io.NewSectionReader(file, 0, f.Size), keys: newKeys()}
	if err := s.scan(); err != nil {
		return nil, fmt.Errorf("%s: byte %d: %w", f.Path, s.at, err)
	}
	return append(s.offsets, s.end), nil
}

// checkFormat refuses files that are often taken for tar files.
func checkFormat(file *os.File, size int64) error {
	if size == 0 {
		return errEmpty
	}
	switch kind, err := compressed.KindOf(file); {
	case err != nil:
		return err
	case kind == compressed.Gzip:
		return errors.New("it is compressed by gzip, so samples can't be read by number: read it with tarset.Stream, or unpack it with gunzip")
	case kind == compressed.Zstd:
		return errors.New("it is compressed by zstd, so samples can't be read by number: read it with tarset.Stream, or unpack it with zstd -d")
	}
	return nil
}

// scanner finds the samples of a shard.
type scanner struct {
	file    *io.SectionReader
	at      int64 // Where the headers of the next member begin.
	end     int64 // Of the last sample.
	offsets []int64
	keys    *keys
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
		if err := refuse(head); err != nil {
			return err
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
	if err != nil {
		return 0, err
	}
	size := contentSize(head)
	if size > s.file.Size()-content {
		return 0, fmt.Errorf("the file is truncated: it has %d bytes, and %s ends at byte %d", s.file.Size(), head.Name, content+size)
	}
	return (content + size + block - 1) / block * block, nil
}

// contentSize returns the size of a member's content in the file.
func contentSize(head *tar.Header) int64 {
	switch head.Typeflag {
	case tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeDir, tar.TypeFifo:
		return 0
	}
	return head.Size
}

// add adds a member, whose headers begin at a byte.
func (s *scanner) add(key, extension string, begin int64) error {
	begins, err := s.keys.add(key, extension)
	if err != nil {
		return err
	}
	if begins {
		s.offsets = append(s.offsets, begin)
	}
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
	return onlyZeros(s.file)
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

// refuse returns an error for a member that looks like a part of a sample, but has no content of
// its own.
func refuse(head *tar.Header) error {
	switch linked := *head; {
	case isSparse(head):
		return fmt.Errorf("%s is a sparse file: make the tar file without --sparse", head.Name)
	case head.Typeflag == tar.TypeLink || head.Typeflag == tar.TypeSymlink:
		linked.Typeflag = tar.TypeReg
		if _, _, ok := split(&linked); ok {
			return fmt.Errorf("%s is a link to %s: make the tar file with --dereference --hard-dereference", head.Name, head.Linkname)
		}
	}
	return nil
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
