package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

func newResults(out io.Writer, folder string) (*results, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("-out %s: %w", folder, err)
	}
	old, _ := filepath.Glob(filepath.Join(folder, "[0-9][0-9]-*.log")) // The pattern is valid.
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("-out %s: %w", folder, err)
		}
	}
	file, err := os.Create(filepath.Join(folder, "results.txt"))
	if err != nil {
		return nil, fmt.Errorf("-out %s: %w", folder, err)
	}
	return &results{out: out, folder: folder, file: file}, nil
}

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
	fmt.Fprint(r.out, text)
	_, err := r.file.WriteString(text)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gpu-check: warning: results.txt isn't complete: %v\n", err)
	}
}

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
