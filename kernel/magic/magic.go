package magic

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/cell"
)

// Session is the kernel's side of a magic. Its methods may be called concurrently, and even after
// the cell has ended.
type Session interface {
	// Print prints text as output of the cell.
	Print(text string)
	// Display shows a bundle (MIME type to content) that an Update with the same id replaces.
	Display(id string, bundle map[string]any)
	Update(id string, bundle map[string]any)
	// Interrupted reports whether the user wants the cell to end.
	Interrupted() bool
	// Cells are the session's cells in their current versions.
	Cells() []Cell
	// Current is the cell that runs the magic.
	Current() Cell
	// Declared are the keys of what the session has declared and not forgotten, as returned by
	// gocell.Session.
	Declared() []string
	// Declare adds a package-level declaration to the magic's cell, with its imports ("NAME PATH").
	// It takes effect as the cell's own declarations do.
	Declare(imported, declaration string) error
}

// Cell is a cell of a session.
type Cell struct {
	// ID is the cell's id in the client's notebook; "" if the client doesn't send one.
	ID     string
	Source string
	// First and Last are the execution counts of its first and its last run.
	First, Last int

	// metadata is the cell's metadata in the saved notebook; nil if it is not known.
	metadata json.RawMessage
	// number is the cell's number in the saved notebook, from 1; 0 if it is not known. placed is
	// set if the cell was found by its id.
	number int
	placed bool
}

// Options say how magics reach the submit command.
type Options struct {
	// Program is the submit command, Environ its environment.
	Program string
	Environ []string
	// Dir returns the current folder of the cells, NotebookDir the notebook's.
	Dir, NotebookDir func() string
	// Module returns the folder of the cells' module.
	Module func() (string, error)
	// Kept is the folder with the values of %keep.
	Kept string
	// Poll is the time between looks at a job. Default: one second.
	Poll time.Duration
}

// Magics runs magics. It remembers the jobs that it submitted. Its methods may be called
// concurrently.
type Magics struct {
	opts Options

	mu   sync.Mutex
	last Job
	ids  int
}

// New returns the magics of a session.
func New(opts Options) *Magics {
	if opts.Poll == 0 {
		opts.Poll = time.Second
	}
	return &Magics{opts: opts}
}

// handler runs a magic.
type handler func(*Magics, context.Context, Session, cell.Magic) error

// handlers run the magics in gocell's table that use the submit command.
var handlers = map[string]handler{
	"%submit":         line((*Magics).submit),
	gocell.SubmitCell: (*Magics).submitCell,
	"%jobs":           line((*Magics).jobs),
	"%logs":           line((*Magics).logs),
	"%wait":           line((*Magics).wait),
	"%cancel":         line((*Magics).cancel),
	gocell.Result:     line((*Magics).result),
}

// line returns a handler for a magic that takes only its line.
func line(run func(m *Magics, ctx context.Context, s Session, args string) error) handler {
	return func(m *Magics, ctx context.Context, s Session, c cell.Magic) error { return run(m, ctx, s, c.Args) }
}

// Run runs a magic. ctx ends with the session.
func (m *Magics) Run(ctx context.Context, s Session, c cell.Magic) error {
	run, ok := handlers["%"+c.Name]
	if !ok {
		return fmt.Errorf("%%%s is not known here", c.Name)
	}
	return run(m, ctx, s, c)
}

// remember makes a job the default of %wait and %logs.
func (m *Magics) remember(j Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = j
}

// newID returns a unique display id.
func (m *Magics) newID(prefix string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids++
	return fmt.Sprintf("%s-%d", prefix, m.ids)
}

// jobOf returns the job that a magic's argument names, or the last one.
func (m *Magics) jobOf(name string) (Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if name != "" && name != m.last.ID {
		return Job{ID: name}, nil
	}
	if m.last.ID == "" {
		return Job{}, fmt.Errorf("no job: nothing was submitted in this session; name one, as %%jobs lists them")
	}
	return m.last, nil
}

// Complete completes the last word of the submit command's arguments: flags and, if it knows them,
// their values.
func (m *Magics) Complete(ctx context.Context, words []string) []string {
	cmd := exec.CommandContext(ctx, m.opts.Program, append([]string{"__complete"}, words...)...)
	cmd.Dir, cmd.Env = m.opts.Dir(), m.opts.Environ
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	var matches []string
	for line := range bytes.Lines(out) {
		word, _, _ := strings.Cut(strings.TrimRight(string(line), "\n"), "\t")
		if strings.HasPrefix(word, "-") {
			matches = append(matches, word)
		}
	}
	return matches
}
