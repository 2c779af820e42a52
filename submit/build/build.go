package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export"
)

// Options configure a build.
type Options struct {
	// CacheDir is the folder where programs are kept.
	CacheDir string
	// Go is the go command; empty is "go".
	Go string
	// Env is the go command's environment; nil is this process's.
	Env []string
}

// Result is the result of a build.
type Result struct {
	// Programs are the programs' paths by cell, and Sums their SHA-256.
	Programs, Sums map[string]string
	// Dir is their folder, and Hash the hash of everything they are made from.
	Dir, Hash string
	// GoVersion is the compiler's version, such as "go1.26.8".
	GoVersion string
	// Cached is set if nothing had to be compiled.
	Cached bool
	// Changed are the programs that were compiled again because something has written into their
	// files: runs with a link to such a file have the changed program.
	Changed []string
}

// lockRetry is the time between checks for another process to finish the same build.
const lockRetry = 50 * time.Millisecond

// Build compiles every cell of the module, which m.Write has written to moduleDir, or finds the
// programs of an earlier call. Mistakes in cells are an *Error. Concurrent builds are safe, even of
// the same notebook by several processes.
func Build(ctx context.Context, moduleDir string, m *export.Module, opt Options) (*Result, error) {
	tools, err := findToolchain(ctx, moduleDir, opt)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", m.Notebook, err)
	}
	hash, err := contentHash(m, tools)
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", m.Notebook, err)
	}
	result := &Result{
		Programs: map[string]string{}, Hash: hash, GoVersion: tools.env["GOVERSION"],
		Dir: filepath.Join(opt.CacheDir, "build", hash[:32]),
	}
	for _, cell := range m.Programs() {
		result.Programs[cell.Name] = filepath.Join(result.Dir, cell.Name)
	}
	if result.Cached = result.whole(); result.Cached {
		_ = touch(result.Dir, time.Now()) // If the cache is read-only for us, its programs can still be used.
		return result, nil
	}
	if err := compileLocked(ctx, moduleDir, m, tools, result); err != nil {
		return nil, err
	}
	return result, nil
}

// compileLocked compiles under a lock, unless another process has just done so.
func compileLocked(ctx context.Context, moduleDir string, m *export.Module, tools *toolchain, r *Result) (err error) {
	if err := os.MkdirAll(filepath.Dir(r.Dir), 0o755); err != nil {
		return fmt.Errorf("build %s: %w", m.Notebook, err)
	}
	lock := flock.New(r.Dir + ".lock")
	if _, err := lock.TryLockContext(ctx, lockRetry); err != nil {
		return fmt.Errorf("build %s: wait for %s.lock: %w", m.Notebook, r.Dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	if r.Cached = r.whole(); r.Cached {
		return nil
	}
	err = compileInto(ctx, moduleDir, m, tools, r)
	if full(err) && makeRoom(filepath.Dir(r.Dir)) {
		err = compileInto(ctx, moduleDir, m, tools, r)
	}
	if full(err) {
		return fullError(err, filepath.Dir(r.Dir))
	}
	if err != nil {
		return err
	}
	if err := prune(filepath.Dir(r.Dir), keptBuilds, time.Now()); err != nil {
		return fmt.Errorf("build %s: remove old programs: %w", m.Notebook, err)
	}
	return nil
}

// compileInto compiles the programs and moves them to r.Dir.
func compileInto(ctx context.Context, moduleDir string, m *export.Module, tools *toolchain, r *Result) (err error) {
	tmp, err := os.MkdirTemp(filepath.Dir(r.Dir), newPrefix+"*")
	if err != nil {
		return fmt.Errorf("build %s: %w", m.Notebook, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := compile(ctx, moduleDir, tmp, m, tools); err != nil {
		return err
	}
	if err := publish(tmp, r); err != nil {
		return fmt.Errorf("build %s: %w", m.Notebook, err)
	}
	return nil
}

// newPrefix begins the name of an unfinished build's folder.
const newPrefix = ".new-"

// publish moves the programs to r.Dir.
func publish(tmp string, r *Result) error {
	if err := r.seal(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(r.Dir); err != nil { // An existing folder is incomplete or changed.
		return err
	}
	return os.Rename(tmp, r.Dir)
}

// compile runs go build once for all cells with the same flags.
func compile(ctx context.Context, moduleDir, out string, m *export.Module, tools *toolchain) error {
	for _, cells := range flagGroups(m) {
		if err := checkFlags(m, cells[0]); err != nil {
			return err
		}
		output, err := tools.run(ctx, compileArgs(out, cells)...)
		if ctx.Err() != nil {
			return fmt.Errorf("build %s: %w", m.Notebook, context.Cause(ctx))
		}
		if err != nil {
			return flagsError(cells[0], newError(m, output, err))
		}
	}
	return nil
}

// compileArgs returns the go command's arguments to compile cells with the same flags.
func compileArgs(out string, cells []rundir.Cell) []string {
	verb, to := []string{"build"}, out+string(filepath.Separator)
	if cells[0].Test {
		verb, to = []string{"test", "-c", "-vet=off"}, filepath.Join(out, cells[0].Name)
	}
	args := slices.Concat(verb, baseFlags, cells[0].BuildFlags, []string{"-o", to})
	for _, cell := range cells {
		args = append(args, "./"+cell.Name)
	}
	return args
}

// flagGroups returns the programs grouped by their flags, in the order of the cells. A program that
// runs tests is always alone.
func flagGroups(m *export.Module) [][]rundir.Cell {
	var groups [][]rundir.Cell
	place := map[string]int{}
	for _, cell := range m.Programs() {
		key := strings.Join(cell.BuildFlags, "\x00")
		if cell.Test {
			key += "\x00" + cell.Name
		}
		i, ok := place[key]
		if !ok {
			i = len(groups)
			place[key], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], cell)
	}
	return groups
}

// baseFlags are go build's flags for every program.
var baseFlags = []string{"-trimpath", "-ldflags=-s -w"}

// refusedFlags change where the program goes, or what the go command does.
var refusedFlags = []string{"-o", "-C", "-n", "-i", "-modfile", "-overlay", "-buildmode"}

// flagsError adds the %goflags of a cell to an error without a position in a cell.
func flagsError(cell rundir.Cell, err error) error {
	var mistakes *Error
	if len(cell.BuildFlags) == 0 || errors.As(err, &mistakes) && len(mistakes.Problems) > 0 {
		return err
	}
	return fmt.Errorf("%w\ncell %s was built with %%goflags %s", err, cell.Label(), strings.Join(cell.BuildFlags, " "))
}

// checkFlags refuses a cell's %goflags that are in refusedFlags.
func checkFlags(m *export.Module, cell rundir.Cell) error {
	for _, flag := range cell.BuildFlags {
		name, _, _ := strings.Cut("-"+strings.TrimLeft(flag, "-"), "=")
		if strings.HasPrefix(flag, "-") && slices.Contains(refusedFlags, name) {
			return fmt.Errorf("build %s: cell %s: %%goflags %s cannot be used for a job; remove it", m.Notebook, cell.Name, name)
		}
	}
	return nil
}
