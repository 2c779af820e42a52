package magic

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"gonbatch/internal/plural"
	"gonbatch/kernel/cell"
	"gonbatch/kernel/tool"
	"gonbatch/submit/report"

	"github.com/google/shlex"
)

// Job is a job that was submitted.
type Job struct {
	// ID is the id for the submit command: the scheduler's job id, or the run's name.
	ID string
	// Dir is the run directory; "" if it is not known.
	Dir string
}

// submit submits the notebook of the session or, with --saved, the one on disk.
func (m *Magics) submit(ctx context.Context, s Session, args string) error {
	words, err := shlex.Split(args)
	if err != nil {
		return fmt.Errorf("%%submit %s: %w", args, err)
	}
	own := ownWords(words)
	if at := slices.Index(own, "--saved"); at >= 0 {
		return m.submitSaved(ctx, s, slices.Delete(words, at, at+1))
	}
	if slices.Contains(own, "--help") || slices.Contains(own, "-h") {
		return m.command(ctx, s, []string{"--help"})
	}
	cells := m.cellsOf(s)
	if len(cells) == 0 {
		return errors.New("%submit: no cell of this session has run without an error yet: run the notebook's cells first, or use %submit --saved")
	}
	s.Print(fmt.Sprintf("submitting this session: %s, as last run without an error\n", plural.Of(len(cells), "cell")))
	return m.submitCells(ctx, s, cells, words)
}

// cellsOf returns the session's cells for the job, and prints which cells it leaves out.
func (m *Magics) cellsOf(s Session) []Cell {
	all := s.Cells()
	warnStale(s, all)
	cells, doubts := arranged(m.tagged(all))
	for _, doubt := range doubts {
		s.Print("warning: " + doubt + "\n")
	}
	cells, left := withoutResults(cells)
	if len(left) > 0 {
		s.Print(fmt.Sprintf("left out, since a job has no values of %%result: cell %s\n", strings.Join(left, ", cell ")))
	}
	return notebookCells(cells)
}

// ownWords returns the words for the submit command itself: those after -- are the programs'.
func ownWords(words []string) []string {
	if at := slices.Index(words, "--"); at >= 0 {
		return words[:at]
	}
	return words
}

// submitSaved submits the notebook's file.
func (m *Magics) submitSaved(ctx context.Context, s Session, words []string) error {
	file := m.notebookFile()
	if file == "" {
		return errors.New("%submit --saved: this client doesn't say which file the notebook is (JPY_SESSION_NAME is unset): use %submit, or !submit FILE")
	}
	if saved := m.savedCells(); saved != nil {
		cells := make([]Cell, len(saved))
		for i, c := range saved {
			cells[i].Source = c.Source
		}
		warnStale(s, cells)
	}
	s.Print("submitting the notebook as it was saved: " + file + "\n")
	return m.start(ctx, s, words, file)
}

// submitCell submits one cell with the declarations of the session.
func (m *Magics) submitCell(ctx context.Context, s Session, c cell.Magic) error {
	words, err := shlex.Split(c.Args)
	if err != nil {
		return fmt.Errorf("%%%%submit %s: %w", c.Args, err)
	}
	if strings.TrimSpace(c.Body) == "" {
		return errors.New("%%submit: there is nothing below this line: write the code of the job there, or use %submit for the whole session")
	}
	cells, this := m.cellsOf(s), m.tagged([]Cell{s.Current()})[0]
	this.Source = asMain(c.Body)
	cells = withNumberFree(cells, this.number)
	s.Print(fmt.Sprintf("submitting this cell, with the declarations of %s\n", plural.Of(len(cells), "other cell")))
	cells = append(cells, this)
	labels := labelsOf(cells)
	return m.submitCells(ctx, s, cells, append([]string{"--cell", labels[len(cells)-1], "--session-kept", m.opts.Kept}, words...))
}

// withNumberFree returns the cells with none that has this number: one that had it is an earlier
// text of the cell that %%submit submits.
func withNumberFree(cells []Cell, number int) []Cell {
	free := slices.Clone(cells)
	for i := range free {
		if free[i].number == number {
			free[i].number = 0
		}
	}
	return free
}

// submitCells writes a notebook of the cells next to the real one, so that the same submit.yaml
// applies and the same files are next to it, and submits it. The cells may be in another folder
// now, by %cd, which the job does again.
func (m *Magics) submitCells(ctx context.Context, s Session, cells []Cell, words []string) (err error) {
	text, err := notebookText(filepath.Base(m.notebook()), cells)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(m.opts.NotebookDir(), ".session-*.ipynb")
	if err != nil {
		return fmt.Errorf("%%submit: write the session's notebook next to yours: %w: make that folder writable, or use %%submit --saved", err)
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	if _, err = file.Write(text); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := file.Close(); err != nil {
		return err
	}
	words = append([]string{"--of", m.notebook()}, words...)
	if !slices.ContainsFunc(ownWords(words), func(w string) bool { return strings.HasPrefix(w, "--name") }) {
		words = append([]string{"--name", m.jobName()}, words...)
	}
	return m.start(ctx, s, append(m.sessionMod(), words...), file.Name())
}

// sessionMod returns the flags that give a job the session's module versions.
func (m *Magics) sessionMod() []string {
	dir, err := m.opts.Module()
	if err != nil {
		return nil // GoNB creates its module before the first cell.
	}
	return []string{"--session-mod", filepath.Join(dir, "go.mod")}
}

// notebookFile returns the notebook's file if the client names it, or "".
func (m *Magics) notebookFile() string {
	name := m.getenv("JPY_SESSION_NAME")
	if name == "" || filepath.Ext(name) != ".ipynb" {
		return ""
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(m.opts.NotebookDir(), name)
	}
	for _, file := range []string{name, filepath.Join(m.opts.NotebookDir(), filepath.Base(name))} {
		if _, err := os.Stat(file); err == nil {
			return file
		}
	}
	return ""
}

// notebook returns the path of the session's notebook, by which its runs are found. It need not
// exist.
func (m *Magics) notebook() string {
	if file := m.notebookFile(); file != "" {
		return file
	}
	return filepath.Join(m.opts.NotebookDir(), m.name()+".ipynb")
}

// jobName returns the notebook's name for a job: without the control characters that a file name
// may have.
func (m *Magics) jobName() string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, m.name())
}

// name returns the notebook's name.
func (m *Magics) name() string {
	if file := m.getenv("JPY_SESSION_NAME"); filepath.Ext(file) == ".ipynb" {
		return strings.TrimSuffix(filepath.Base(file), ".ipynb")
	}
	return "notebook"
}

func (m *Magics) getenv(name string) string { return tool.Get(m.opts.Environ, name) }

// start runs the submit command with a notebook, and then shows the card of the job that it
// created.
func (m *Magics) start(ctx context.Context, s Session, words []string, file string) error {
	args, at := slices.Clone(words), len(ownWords(words))
	var job Job
	err := m.run(ctx, s, append([]string{"--json"}, slices.Insert(args, at, file)...), func(line string) string {
		if job.ID != "" {
			return line
		}
		var said report.Submission
		if json.Unmarshal([]byte(line), &said) == nil && said.Run != "" {
			job = Job{ID: cmp.Or(said.Job, said.Run), Dir: said.Directory}
			return text(said)
		}
		var sweep report.Sweep
		if json.Unmarshal([]byte(line), &sweep) == nil && sweep.Sweep != "" {
			return text(sweep)
		}
		var preview report.Preview
		if json.Unmarshal([]byte(line), &preview) == nil && preview.Script != "" {
			return text(preview)
		}
		return line
	})
	if job.ID != "" {
		m.remember(job)
		m.follow(ctx, s, job)
	}
	return err
}

// text formats a report for people.
func text(r report.Report) string {
	var b strings.Builder
	_ = r.Text(&b) // A Builder never fails.
	return b.String()
}

// run runs the submit command and prints each line of its output in the cell, as formatted by show.
// An interrupt ends it.
func (m *Magics) run(ctx context.Context, s Session, args []string, show func(line string) string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.opts.Program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTime
	cmd.Dir, cmd.Env = m.opts.Dir(), m.opts.Environ
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var problems bytes.Buffer
	cmd.Stderr = &problems
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", m.opts.Program, err)
	}
	if s.Interrupted() { // just before the program started, so the program has not received the interrupt
		_ = cmd.Cancel()
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if line != "" {
			s.Print(show(line))
		}
		if err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		if text := strings.TrimSpace(problems.String()); text != "" {
			return errors.New(text)
		}
		return fmt.Errorf("submit: %w", err)
	}
	if problems.Len() > 0 {
		s.Print(problems.String())
	}
	return nil
}
