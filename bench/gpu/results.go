package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

// The results of a check.
const (
	ok     = "ok"
	failed = "FAILED"
	skip   = "skipped"
	notRun = "not run"
)

// row is a check's result.
type row struct {
	name, result, figures string
	took                  time.Duration
}

// skipped is why a check can't run here.
type skipped string

func (s skipped) Error() string { return string(s) }

// results prints what is known as soon as it is known, and keeps it in a file.
type results struct {
	out    io.Writer
	folder string
	file   *os.File
	rows   []row

	mu   sync.Mutex
	logs int
}

// resultsBegin begins the file of the results.
const resultsBegin = "gpu-check"

// newResults returns those that go to a folder: a new one, an empty one, or that of an earlier
// check.
func newResults(out io.Writer, folder string) (*results, error) {
	fails := func(err error) (*results, error) { return nil, fmt.Errorf("-out %s: %w", folder, err) }
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return fails(err)
	}
	path := filepath.Join(folder, "results.txt")
	old, err := os.ReadDir(folder)
	if err != nil {
		return fails(err)
	}
	if len(old) > 0 {
		if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), resultsBegin) && len(text) > 0 {
			return fails(errors.New("it has files of something else: give a new folder, or an empty one"))
		}
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return fails(err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fails(fmt.Errorf("another check writes there: give it a folder of its own (%w)", err))
	}
	for _, entry := range old {
		if logName.MatchString(entry.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(folder, entry.Name())))
		}
	}
	if err = errors.Join(err, file.Truncate(0)); err != nil {
		return fails(err)
	}
	return &results{out: out, folder: folder, file: file}, nil
}

// logName matches the files of log.
var logName = regexp.MustCompile(`^\d{2,}-[a-z0-9-]+\.log$`)

// log creates a file for the whole output of a program.
func (r *results) log(name string) (*os.File, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs++
	return os.Create(filepath.Join(r.folder, fmt.Sprintf("%02d-%s.log", r.logs, strings.ReplaceAll(name, "/", "-"))))
}

// say writes a text of whole lines. A machine that is taken away a moment later has it on disk.
func (r *results) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.write(text)
	fmt.Fprint(r.out, text)
}

func (r *results) write(text string) {
	_, err := r.file.WriteString(text)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gpu-check: warning: results.txt isn't complete: %v\n", err)
	}
}

// begin notes, in the file only, which check runs: the machine may not survive it.
func (r *results) begin(check string) { r.write("(" + check + " runs)\n") }

func (r *results) add(row row) {
	r.rows = append(r.rows, row)
	r.say("%-7s  %-24s %5.1f s  %s\n", row.result, row.name, row.took.Seconds(), strings.ReplaceAll(row.figures, "\n", "\n    "))
}

// table is that of all rows, in Markdown.
func (r *results) table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	fmt.Fprintln(w, "| check\t| result\t| figures\t| seconds\t|")
	fmt.Fprintln(w, "|---\t|---\t|---\t|--:\t|")
	for _, row := range r.rows {
		fmt.Fprintf(w, "| %s\t| %s\t| %s\t| %.1f\t|\n", row.name, row.result, short(row.figures), row.took.Seconds())
	}
	_ = w.Flush() // A strings.Builder takes everything.
	return text.String()
}

// short is a text for a cell of the table.
func short(text string) string {
	const most = 200
	text = strings.NewReplacer("\n", "; ", "|", "/").Replace(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return text
}
