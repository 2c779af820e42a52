package magic

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"gonbatch/internal/gocell"
	"gonbatch/kernel/widget"
)

// Session is the kernel's side of a magic. Its methods may be called at once from several
// goroutines, and also after the cell ended.
type Session interface {
	// Print puts text out as the cell's.
	Print(text string)
	// Display shows a bundle (MIME type to content) that an Update with the same id replaces.
	Display(id string, bundle map[string]any)
	Update(id string, bundle map[string]any)
	// Interrupted reports whether the user wants the cell to end.
	Interrupted() bool
	// Cells are the session's cells, as they stand.
	Cells() []Cell
	// Declared are the keys of what the session has declared and not forgotten, as gocell.Session
	// gives them.
	Declared() []string
	// Declare adds a package-level declaration to the magic's cell, and what it imports ("NAME
	// PATH"). It takes effect as the cell's own do.
	Declare(imported, declaration string) error
	// Widgets are those of the session; nil if it can't have any.
	Widgets() *widget.Hub
}

// Cell is a cell of a session.
type Cell struct {
	// ID is the cell's in the client's notebook; "" if the client does not say.
	ID     string
	Source string
	// First and Last are the numbers by which its first and its last run are known.
	First, Last int

	// metadata is what the saved notebook has; nil if nothing is known.
	metadata json.RawMessage
	// number is the cell's in the saved notebook, from 1; 0 is unknown. placed is set if it is
	// known by the cell's id.
	number int
	placed bool
}

// Call is a magic in a cell.
type Call struct {
	// Name is the magic's, without its %; %%submit is "%submit".
	Name string
	// Args are the rest of its line, Body the rest of the cell if the magic takes it.
	Args, Body string
}

// Options say how magics reach the submit command.
type Options struct {
	// Program is the submit command, Environ its environment.
	Program string
	Environ []string
	// Dir returns the folder in which cells run now.
	Dir func() string
	// Module returns the folder of the cells' module; nil if there is none.
	Module func() (string, error)
	// Kept is the folder of the values of %keep; "" if there is none.
	Kept string
	// Poll is how often a job is asked for; unset, once a second.
	Poll time.Duration
}

// Magics runs magics. It remembers the jobs that it submitted. Its methods may be called at once
// from several goroutines.
type Magics struct {
	opts Options

	mu   sync.Mutex
	last Job
	ids  int
}

// New makes the magics of a session.
func New(opts Options) *Magics {
	if opts.Poll == 0 {
		opts.Poll = time.Second
	}
	return &Magics{opts: opts}
}

// handler runs a magic.
type handler func(*Magics, context.Context, Session, Call) error

// handlers run the magics of gocell's table that the submit command runs.
var handlers = map[string]handler{
	"%submit":         line((*Magics).submit),
	gocell.SubmitCell: (*Magics).submitCell,
	"%jobs":           line((*Magics).jobs),
	"%logs":           line((*Magics).logs),
	"%wait":           line((*Magics).wait),
	"%cancel":         line((*Magics).cancel),
	gocell.Result:     line((*Magics).result),
}

// line runs a magic that takes only its line.
func line(run func(m *Magics, ctx context.Context, s Session, args string) error) handler {
	return func(m *Magics, ctx context.Context, s Session, c Call) error { return run(m, ctx, s, c.Args) }
}

// Run runs a magic. ctx ends with the session.
func (m *Magics) Run(ctx context.Context, s Session, c Call) error {
	run, ok := handlers["%"+c.Name]
	if !ok {
		return fmt.Errorf("%%%s is not known here", c.Name)
	}
	return run(m, ctx, s, c)
}

// remember makes a job the one that %wait and %logs mean without a name.
func (m *Magics) remember(j Job) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = j
}

// newID is a display id that no other display has.
func (m *Magics) newID(prefix string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ids++
	return fmt.Sprintf("%s-%d", prefix, m.ids)
}

// jobOf is the job that a magic's argument names, or the last one.
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
