package keep

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// place is where this process keeps values.
type place struct {
	// from is the folder with the values of earlier cells, and to is where this cell's values go;
	// empty means nowhere. In a session they are the same. In a job each cell has its own folder,
	// so that a cell that is started again, and a later run that begins after it, finds the values
	// as they were before.
	from, to string
	// errors is the file for an error; empty means none. open is a file that marks a program that
	// has not saved its variables yet. unsaved is an earlier cell of the job that never saved its
	// variables.
	errors, open, unsaved string
	// rank is this process's rank, and size the size of the world: each rank of a job has its own
	// values.
	rank, size int
}

// findPlace returns the place of this process: a session's folder, or a job's run directory.
func findPlace() (p place, err error) {
	dir := os.Getenv(rundir.EnvKeepDir)
	p = place{from: dir, to: dir, errors: os.Getenv(rundir.EnvKeepErrors), size: 1}
	if ranks, err := cluster.Detect(os.Getenv); err == nil { // Programs that use ranks fail on invalid values.
		p.rank, p.size = ranks.Rank, ranks.Size
	}
	if env := rundir.ReadEnv(os.Getenv); dir == "" && env.InRun() {
		p.to = env.Dir.KeptAfter(env.Cell)
		p.from, err = env.Dir.KeptBefore(env.Cell)
		p.open, p.unsaved = env.Dir.KeptOpenIn(env.Cell, p.rank), env.Dir.UnsavedBefore(env.Cell)
	}
	if p.errors != "" {
		p.open, p.unsaved = rundir.KeptOpen(p.errors), ""
	}
	if err != nil {
		err = fmt.Errorf("%%keep: %w", err)
	}
	return p, err
}

// exit ends the program.
var exit = os.Exit

// report writes an error to the place's error file. Without one it ends the program, unless the
// program is panicking.
func (p place) report(err error) {
	if p.errors != "" && os.WriteFile(p.errors, []byte(err.Error()), 0o600) == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if !panics() {
		exit(1)
	}
}

// setOpen creates the mark, with the names of the variables, while main runs and removes it
// afterwards. If the mark is still there when the program has ended, the variables were not saved.
func (p place) setOpen(names []string) {
	switch {
	case p.open == "":
	case len(names) > 0: // Without the mark, nobody is warned.
		_ = os.MkdirAll(filepath.Dir(p.open), 0o700)
		_ = os.WriteFile(p.open, []byte(strings.Join(names, ", ")), 0o600)
	default:
		_ = os.Remove(p.open)
	}
}

// warnOfUnsaved warns that an earlier cell of the job has not saved its variables.
func (p place) warnOfUnsaved(names []string) {
	if p.unsaved != "" && p.rank == 0 {
		fmt.Fprintf(os.Stderr, "%%keep %s: not saved in cell %s, because its program ended before main returned, or while it was saving: its changes are lost\n", strings.Join(names, ", "), p.unsaved)
	}
}

// file returns the file from which this rank loads a value: its own, or rank 0's if it has none. In
// a session, the kernel has already given it rank 0's, which may have another value by now.
func (p place) file(name string) string {
	own := rundir.KeptValue(p.from, name, p.rank)
	if p.from == p.to {
		return own
	}
	if _, err := os.Stat(own); errors.Is(err, fs.ErrNotExist) {
		return rundir.KeptValue(p.from, name, 0)
	}
	return own
}

// has reports whether there is a kept value, of the variable's declaration, where it would be
// saved.
func (p place) has(name string) bool {
	if p.from == "" || p.from != p.to {
		return false
	}
	f, err := p.find(name)
	if f == nil || err != nil {
		return false
	}
	_ = f.Close() // It was only read.
	return true
}

// find opens the kept value of a variable, after the header. It returns nil if there is none, or if
// the variable starts with its initial value.
func (p place) find(name string) (*os.File, error) {
	f, err := os.Open(p.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	starts := false
	before, err := readHeader(f)
	if err == nil {
		starts, err = program.declared.starts(name, before)
	}
	if starts || err != nil {
		_ = f.Close() // It was only read.
		return nil, err
	}
	return f, nil
}

func (p place) load(name string, target reflect.Value) error {
	if p.from == "" {
		return nil
	}
	f, err := p.find(name)
	if f == nil || err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was only read
	value, err := decode(f, target.Type())
	if errors.As(err, new(errPanic)) {
		return err
	}
	if err != nil {
		return fmt.Errorf("the kept value does not fit %s: %w", target.Type(), err)
	}
	target.Set(value)
	p.warnOfLost(name, f, target.Type())
	return nil
}

// warnOfLost warns that the value in a file has fields that the variable's type lacks.
func (p place) warnOfLost(name string, f *os.File, t reflect.Type) {
	if p.rank != 0 || !usesGob(t) {
		return
	}
	lost := lostFields(f, t)
	for i := range lost {
		lost[i] = name + lost[i]
	}
	if len(lost) > 0 {
		fmt.Fprintf(os.Stderr, "%%keep %s: the kept value has %s, which the type of %s lacks: this part is lost when %s changes\n",
			name, strings.Join(lost, ", "), name, name)
	}
}

func (p place) save(name string, value reflect.Value) error {
	if err := os.MkdirAll(p.to, 0o700); err != nil {
		return err
	}
	old, file := "", rundir.KeptValue(p.to, name, p.rank)
	if p.from != "" {
		old = p.file(name)
	}
	if u := program.unread[name]; u != nil {
		if u.initial == hashOf(name, value) {
			return errors.Join(carry(file, old), p.forget(name))
		}
		if err := p.setAside(name, file, old); err != nil {
			return err
		}
		delete(program.unread, name)
	}
	u, err := newUpdate(file, old)
	if err != nil {
		return err
	}
	if err := encodeFile(u, name, value); err != nil {
		return errors.Join(err, u.Discard())
	}
	if u.old != nil && u.draft != nil && unchanged(name, u.old, value) {
		return errors.Join(u.Carry(), p.forget(name))
	}
	return errors.Join(u.Commit(), p.forget(name))
}

// encodeFile writes a value with its header.
func encodeFile(w io.Writer, name string, value reflect.Value) error {
	b := bufio.NewWriterSize(w, 1<<20)
	if err := errors.Join(writeHeader(b, program.declared.hash(name)), encode(b, name, value)); err != nil {
		return err
	}
	return b.Flush()
}

// unchanged reports whether the old file already has the value, in gob's encoding: that depends on
// the order of a map's entries, and on the types that the program has encoded before. Then the file
// stays as it is, because a training run compares the hash of the kept values to decide whether it
// may resume.
func unchanged(name string, old *os.File, value reflect.Value) bool {
	if !usesGob(value.Type()) || check(value, name) != nil {
		return false
	}
	if _, err := old.Seek(0, io.SeekStart); err != nil {
		return false
	}
	if hash, err := readHeader(old); err != nil || hash != program.declared.hash(name) {
		return false
	}
	before, err := decode(old, value.Type())
	return err == nil && digest(before) == digest(value)
}

// hashOf returns the hash of the encoded value. If the value can't be encoded, it returns the text
// of the error.
func hashOf(name string, value reflect.Value) string {
	if usesGob(value.Type()) && check(value, name) == nil {
		return digest(value)
	}
	sum := sha256.New()
	if err := encodeFile(sum, name, value); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// carry passes the earlier value on to later programs, unchanged.
func carry(file, old string) error {
	if file == old {
		return nil
	}
	u, err := newUpdate(file, old)
	if err != nil {
		return err
	}
	return u.Carry()
}

// setAside keeps a value that could not be loaded, because the program has set a new one.
func (p place) setAside(name, file, old string) error {
	if file != old {
		return nil // The earlier cell's folder has it.
	}
	aside := old + ".unread"
	if err := os.Rename(old, aside); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%%keep %s: it has a new value; the one that could not be loaded is now in %s\n", name, aside)
	return nil
}

// forget makes rank 0 remove the values of ranks that this program doesn't have. If such ranks
// appear later, they load rank 0's values.
func (p place) forget(name string) error {
	if p.rank != 0 {
		return nil
	}
	for rank := max(p.size, 1); ; rank++ {
		err := os.Remove(rundir.KeptValue(p.to, name, rank))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
