package tarset

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strings"

	"gonbatch/data/compressed"
	"gonbatch/data/files"
)

// block is the unit of a tar file.
const block = 512

// scan returns where the samples of a shard begin, and where the last one ends.
func scan(f files.File) (offsets []int64, err error) {
	end := int64(0)
	err = withContent(f, func(c *content, from io.Reader) error {
		if c.kind != "" {
			return fmt.Errorf("it is compressed by %s, so samples can't be read by number: read it with tarset.Stream, or unpack it with %s", c.kind, unpack[c.kind])
		}
		w := newWalker(c, from)
		for {
			m, err := w.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("byte %d: %w", w.at, err)
			}
			if m.begins {
				offsets = append(offsets, w.at)
			}
			end = w.end
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return append(offsets, end), nil
}

// unpack are the commands that unpack files.
var unpack = map[compressed.Kind]string{compressed.Gzip: "gunzip", compressed.Zstd: "zstd -d"}

// walker walks over the members of a shard, in order.
type walker struct {
	content *content
	members *tar.Reader
	keys    keys
	at, end int64 // Where the newest member begins, with its headers, and ends.
}

// member is a member that belongs to a sample.
type member struct {
	key, extension string
	size           int64
	begins         bool // The sample begins with it.
}

func newWalker(c *content, from io.Reader) walker {
	return walker{content: c, members: tar.NewReader(from), keys: keys{seed: maphash.MakeSeed(), seen: map[uint64]bool{}}}
}

// next returns the next member that belongs to a sample; io.EOF at the end, if the shard has its
// end. Reading up to the end compares the checksum of a compressed file.
func (w *walker) next() (m member, err error) {
	for {
		head, err := w.members.Next()
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) && !w.content.ended(w.end) {
			return m, compressed.ErrTruncated
		}
		w.at = w.end
		switch {
		case errors.Is(err, io.EOF):
			return m, cmp.Or(onlyZeros(w.content), io.EOF)
		case err != nil:
			return m, compressed.Explain(err)
		}
		if err := refuse(head); err != nil {
			return m, err
		}
		w.end = (w.content.read + contentSize(head) + block - 1) / block * block
		if key, extension, ok := split(head); ok {
			begins, err := w.keys.add(key, extension)
			return member{key, extension, head.Size, begins}, err
		}
	}
}

// contentSize returns the size of a member's content in the file.
func contentSize(head *tar.Header) int64 {
	switch head.Typeflag {
	case tar.TypeLink, tar.TypeSymlink, tar.TypeChar, tar.TypeBlock, tar.TypeDir, tar.TypeFifo:
		return 0
	}
	return head.Size
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
