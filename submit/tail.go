package submit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"gonbatch/internal/rundir"
)

// Tail copies a file as it grows. The file may not exist yet, a requeued job may append to it, and
// it may be written again from the start.
type Tail struct {
	path   string
	offset int64
}

// NewTail returns a Tail of the file at path, from its start.
func NewTail(path string) *Tail { return &Tail{path: path} }

// Copy writes everything added since the last call to w, and reports whether there was anything. It
// does not wait.
func (t *Tail) Copy(w io.Writer) (bool, error) {
	f, err := rundir.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() < t.offset {
		t.offset = 0
	}
	n, err := io.Copy(w, io.NewSectionReader(f, t.offset, info.Size()-t.offset))
	t.offset += n
	return n > 0, err
}

// lastBytes bounds how much of a log LastLines reads.
const lastBytes = 64 << 10

// LastLines returns up to n last lines that the run's last start wrote to one of its logs.
func LastLines(dir rundir.Dir, path string, n int) ([]string, error) {
	return lastLines(path, rundir.StartOfLog(dir, path), n)
}

// lastLines returns up to n last lines of the file at path, from an offset on.
func lastLines(path string, from int64, n int) ([]string, error) {
	f, err := rundir.Open(path)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	if from > info.Size() {
		from = 0 // It was written again from the start.
	}
	start := max(from, info.Size()-lastBytes)
	data, err := io.ReadAll(io.NewSectionReader(f, start, info.Size()-start))
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	text := strings.TrimRight(string(data), "\n")
	if part, whole, found := strings.Cut(text, "\n"); found && start > from {
		for _, begins := range append([]string{"\r"}, goFailures...) {
			if at := strings.LastIndex(part, begins); at >= 0 {
				whole = text[at:] // What counts of a long line that has no beginning here.
				break
			}
		}
		text = whole
	}
	return rundir.LastLines(text, n), nil
}
