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

// Options say with what to build. The zero value is the go command on PATH and the user's cache.
type Options struct {
	// CacheDir is the folder to keep programs below; empty is gonbatch's folder in the user's
	// cache.
	CacheDir string
	// Go is the go command; empty is "go".
	Go string
	// Env is the go command's environment; nil is this process's own.
	Env []string
}

// Result is what was built.
type Result struct {
	// Programs are the programs' paths by cell, and Sums their SHA-256.
	Programs, Sums map[string]string
	// Dir is the folder that they are in, and Hash what they are made from.
	Dir, Hash string
	// GoVersion is the compiler's version, as in "go1.26.8".
	GoVersion string
	// Cached tells that nothing had to be compiled.
	Cached bool
	// Changed are the programs that were compiled again because something has written into their
	// files: runs that have a link to such a file have the changed program.
	Changed []string
}

// lockRetry is how long to wait before looking again whether another process has finished the same
// build.
const lockRetry = 50 * time.Millisecond

// Build compiles every cell of the module, which m.Write has put into moduleDir, or finds the
// programs of an earlier call. Mistakes in cells are an *Error. Builds at once, also of the same
// notebook by several processes, are safe.
func Build(ctx context.Context, moduleDir string, m *export.Module, opt Options) (*Result, error) {
	cacheDir, err := opt.cacheDir()
	if err != nil {
		return nil, fmt.Errorf("build %s: %w", m.Notebook, err)
	}
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
		Dir: filepath.Join(cacheDir, "build", hash[:32]),
	}
	for _, cell := range m.Programs() {
		result.Programs[cell.Name] = filepath.Join(result.Dir, cell.Name)
	}
	if result.Cached = result.whole(); result.Cached {
		_ = touch(result.Dir, time.Now()) // Where the cache is not ours to change, the programs serve all the same.
		return result, nil
	}
	if err := compileLocked(ctx, moduleDir, m, tools, result); err != nil {
		return nil, err
	}
	return result, nil
}

// cacheDir is the folder to keep results below.
func (o Options) cacheDir() (string, error) {
	if o.CacheDir != "" {
		return o.CacheDir, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder: %w; set HOME or XDG_CACHE_HOME", err)
	}
	return filepath.Join(cache, "gonbatch"), nil
}

// compileLocked compiles, unless another process that held the lock has just done so.
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

// compileInto compiles to where the result says.
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

// newPrefix begins the name of a folder that is being filled.
const newPrefix = ".new-"

// publish moves the programs to where the result says.
func publish(tmp string, r *Result) error {
	if err := r.seal(tmp); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(r.Dir); err != nil { // What is there lacks a program.
		return err
	}
	if err := os.Rename(tmp, r.Dir); err != nil {
		return err
	}
	return nil
}

// compile runs go build, once for all cells that have the same flags.
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

// compileArgs are the go command's arguments that compile cells with the same flags.
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

// flagGroups are the programs, together where they have the same flags, in the order of the cells.
// One that runs tests is always alone.
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

// refusedFlags decide where the program goes or what the go command does instead of building.
var refusedFlags = []string{"-o", "-C", "-n", "-i", "-modfile", "-overlay", "-buildmode"}

// flagsError adds the %goflags of a cell to an error that is in no cell's line.
func flagsError(cell rundir.Cell, err error) error {
	var mistakes *Error
	if len(cell.BuildFlags) == 0 || errors.As(err, &mistakes) && len(mistakes.Problems) > 0 {
		return err
	}
	return fmt.Errorf("%w\ncell %d was built with %%goflags %s", err, cell.Number, strings.Join(cell.BuildFlags, " "))
}

// checkFlags refuses %goflags that would build something else, or nothing.
func checkFlags(m *export.Module, cell rundir.Cell) error {
	for _, flag := range cell.BuildFlags {
		name, _, _ := strings.Cut("-"+strings.TrimLeft(flag, "-"), "=")
		if strings.HasPrefix(flag, "-") && slices.Contains(refusedFlags, name) {
			return fmt.Errorf("build %s: cell %s: %%goflags %s cannot be used for a job; remove it", m.Notebook, cell.Name, name)
		}
	}
	return nil
}
