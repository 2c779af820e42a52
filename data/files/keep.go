package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gonbatch/data"
	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
)

// Derived is something that is computed from files, and can be computed again.
type Derived struct {
	// Files are what it is computed from.
	Files []File
	// Kind is its format and all settings that it depends on.
	Kind string
	// Dir is the folder where it is kept. Default: the folder "derived" in data.Dir.
	Dir string
}

// quickBytes is the size of files that are read so quickly that nothing is kept of them.
const quickBytes = 16 << 20

// Kept is what was computed from files. ReadAt may be called concurrently. It is closed when the
// garbage collector finds that it is no longer used.
type Kept struct {
	io.ReaderAt
	Size int64
	Path string // Of the file; "in memory" if there is none. It may be removed at any time.
}

// Keep returns what build writes, or has written in an earlier call for the same files with the
// same sizes and times, also in another process. Of several processes, one calls build, and the
// others wait. Of files that are small together, the result is in memory. build writes the same
// each time.
func Keep(d Derived, build func(io.Writer) error) (*Kept, error) {
	size := int64(0)
	for _, f := range d.Files {
		size += f.Size
	}
	if size <= quickBytes && d.Dir == "" {
		return inMemory(build)
	}
	dir := d.Dir
	if dir == "" {
		dir = filepath.Join(data.Dir(os.Getenv), "derived")
	}
	return d.inFolder(dir, build)
}

func inMemory(build func(io.Writer) error) (*Kept, error) {
	var buffer bytes.Buffer
	if err := build(&buffer); err != nil {
		return nil, err
	}
	return &Kept{bytes.NewReader(buffer.Bytes()), int64(buffer.Len()), "in memory"}, nil
}

const (
	hashedBlocks = 64
	blockBytes   = 1 << 20
)

// Hash hashes the content: all of up to 64 MiB, or 64 blocks of 1 MiB that are spread evenly.
func (k *Kept) Hash() string {
	hash := sha256.New()
	for at, step := int64(0), max(blockBytes, k.Size/hashedBlocks); at < k.Size; at += step {
		if _, err := io.Copy(hash, io.NewSectionReader(k, at, min(blockBytes, k.Size-at))); err != nil {
			fmt.Fprintln(hash, err)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:32]
}

// inFolder opens the file in a folder. One that was made from other files, or from the same ones
// before they changed, is replaced.
func (d Derived) inFolder(dir string, build func(io.Writer) error) (*Kept, error) {
	path, head := filepath.Join(dir, d.name()), d.head()
	var kept *Kept
	have := func() bool {
		kept = openKept(path, head)
		return kept != nil
	}
	var built error // What building or writing the content has returned.
	err := fetch.Once(context.Background(), path, nil, have, func() error {
		return fetch.Write(path, 0, "", func(w io.Writer) error {
			if _, built = io.WriteString(w, head); built == nil {
				built = build(w)
			}
			return built
		})
	})
	if err == nil && kept == nil && !have() {
		err = fmt.Errorf("%s was written, but can't be read", path)
	}
	file, ok := errors.AsType[*fs.PathError](built)
	if err != nil && (built == nil || ok && file.Op == "write") {
		err = fmt.Errorf("%w: set %s to a folder with room that you may write to", err, rundir.EnvData)
	}
	return kept, err
}

// openKept returns the content of a file after its head; nil if it has another head.
func openKept(path, head string) *Kept {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	info, err := file.Stat()
	begin := make([]byte, len(head))
	if err == nil {
		_, err = file.ReadAt(begin, 0)
	}
	if err != nil || string(begin) != head {
		_ = file.Close() // It was only read.
		return nil
	}
	size := info.Size() - int64(len(head))
	return &Kept{io.NewSectionReader(file, int64(len(head)), size), size, path}
}

// name is the same when the files change, so that one result replaces another.
func (d Derived) name() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", d.Kind)
	for _, f := range d.Files {
		fmt.Fprintf(hash, "%q\n", f.Path)
	}
	return hex.EncodeToString(hash.Sum(nil))[:32]
}

// head is the beginning of the file, which says what it was made from.
func (d Derived) head() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n", d.Kind)
	for _, f := range d.Files {
		fmt.Fprintf(hash, "%q %d %d\n", f.Path, f.Size, f.Modified.UnixNano())
	}
	return fmt.Sprintf("gonbatch derived 1\n%x\n", hash.Sum(nil))
}
