package modules

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
	"gonbatch/submit/export"
	"gonbatch/submit/export/gomod"
	"gonbatch/submit/export/nbcell"
	"gonbatch/submit/scratch"
)

// Options configure Resolve. The zero value uses the go command on PATH, and keeps nothing.
type Options struct {
	// Go is the go command; empty is "go".
	Go string
	// Imports is the command that calls Command, such as "submit", "imports". If it is empty,
	// packages that no cell imports are looked for from this process's folder.
	Imports []string
	// Env is the go command's environment, in the form of os.Environ.
	Env []string
	// Lock is the file that keeps the result; empty keeps nothing.
	Lock string
	// Session is the go.mod of the kernel that runs the notebook; nil if there is none.
	Session []byte
	// ModuleCache is the folder of downloaded modules.
	ModuleCache string
}

// Result is a notebook with its resolved modules.
type Result struct {
	Module *export.Module
	// Taken are the modules that programs import and that gonbatch does not provide in the same
	// version, sorted.
	Taken []Taken
	// Warnings describe failed commands, and versions that may not be the expected ones.
	Warnings []nbcell.Note
	// LockError is why the lock could not be written.
	LockError error
}

// Taken is a module with its version for the programs.
type Taken struct {
	Path, Version string
	// Why is where the version comes from.
	Why string
}

// String returns the module, its version and why it has this version.
func (t Taken) String() string { return fmt.Sprintf("%s %s (%s)", t.Path, t.Version, t.Why) }

// Exporter exports the notebook with its modules as resolved so far.
type Exporter func(export.Resolved) (*export.Module, error)

// resolver finds the modules of one notebook.
type resolver struct {
	Options
	export Exporter
	// first is the notebook with gonbatch's own modules; module is the current one.
	first, module *export.Module
	own           *modfile.File
	// dir is the module's folder while the go command works on it.
	dir     string
	lock    *lock
	imports map[string]map[string]string
	// why is where each module's version comes from.
	why      map[string]string
	warnings []nbcell.Note
	// workspace are the modules that go.work has replaced.
	workspace []string
}

// Resolve finds the modules of a notebook that was exported with gonbatch's own ones. It runs no go
// command if nothing is missing. A mistake in the notebook is an *nbcell.Error.
func Resolve(ctx context.Context, m *export.Module, again Exporter, opt Options) (*Result, error) {
	r := &resolver{Options: opt, export: again, first: m, module: m, imports: map[string]map[string]string{}, why: map[string]string{}}
	var err error
	if r.own, err = modfile.Parse("go.mod", m.Files["go.mod"], nil); err != nil {
		return nil, fmt.Errorf("modules of %s: %w", m.Notebook, err)
	}
	if len(m.Commands) == 0 && len(m.Open) == 0 && r.hasSources() { // gonbatch's own modules are enough.
		return &Result{Module: m}, nil
	}
	if r.lock, err = readLock(opt.Lock); err != nil {
		return nil, fmt.Errorf("modules of %s: %w", m.Notebook, err)
	}
	result, err := r.resolve(ctx)
	if err != nil && r.lock != nil {
		err = fmt.Errorf("%w\nthe versions of %s are in use; delete that file to get the newest ones", err, opt.Lock)
	}
	return result, err
}

// resolve finds the modules that the notebook needs beyond gonbatch's own.
func (r *resolver) resolve(ctx context.Context) (*Result, error) {
	known := r.lock != nil && slices.Contains(r.lock.keys, r.key(r.lock.diff.mod))
	if known {
		if err := r.useLock(); err != nil {
			return nil, err
		}
		if r.hasSources() && len(r.module.Open) == 0 {
			return r.result()
		}
	}
	if err := r.search(ctx, known); err != nil {
		return nil, err
	}
	return r.result()
}

// hasSources reports whether the sources of all imported packages are on this machine.
func (r *resolver) hasSources() bool {
	mod, err := modfile.Parse("go.mod", r.module.Files["go.mod"], nil)
	if err != nil {
		return false
	}
	names := gomod.Names{Mod: mod, SourceDir: r.first.SourceDir, ModCache: r.ModuleCache}
	return !slices.ContainsFunc(r.module.Imports, func(path string) bool { return !names.Has(path) })
}

// useLock takes the modules and imports of the lock.
func (r *resolver) useLock() (err error) {
	r.imports = r.lock.imports
	for _, require := range r.lock.diff.mod.Require {
		r.why[require.Mod.Path] = filepath.Base(r.Lock)
	}
	for _, replace := range r.lock.diff.mod.Replace {
		r.why[replace.Old.Path] = filepath.Base(r.Lock)
	}
	goMod, err := r.lock.diff.apply(r.own)
	if err != nil {
		return fmt.Errorf("modules of %s: %s: %w", r.first.Notebook, r.Lock, err)
	}
	r.module, err = r.export(export.Resolved{
		GoMod: goMod, GoSum: gomodule.JoinSums(r.first.Files["go.sum"], r.lock.goSum), Imports: r.imports,
	})
	return err
}

// search finds the modules with the go command. known is set if r.module already includes the
// results of the notebook's own commands.
func (r *resolver) search(ctx context.Context, known bool) (err error) {
	if r.dir, err = scratch.Make(scratch.Module); err != nil {
		return err
	}
	defer os.RemoveAll(r.dir) //nolint:errcheck // a temporary folder
	if err := r.module.Write(r.dir); err != nil {
		return err
	}
	if !known {
		if err := r.startFromEarlier(); err != nil {
			return err
		}
		if err := r.replay(ctx); err != nil {
			return err
		}
	}
	for {
		if err := r.provide(ctx); err != nil {
			return err
		}
		if err := r.exportAgain(); err != nil {
			return err
		}
		if !r.findImports(ctx) {
			return nil
		}
		if err := r.exportAgain(); err != nil {
			return err
		}
	}
}

// exportAgain exports the notebook with its modules as resolved so far. The files are the same as
// those that the lock will produce.
func (r *resolver) exportAgain() error {
	mod, err := r.goMod()
	if err != nil {
		return err
	}
	d, err := difference(mod, r.own)
	if err != nil {
		return err
	}
	resolved := export.Resolved{Imports: r.imports}
	if resolved.GoMod, err = d.apply(r.own); err != nil {
		return err
	}
	sum, err := os.ReadFile(r.file("go.sum"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	resolved.GoSum = gomodule.JoinSums(sum, nil)
	if r.module, err = r.export(resolved); err != nil {
		return err
	}
	return r.module.Write(r.dir)
}

func (r *resolver) file(name string) string { return filepath.Join(r.dir, name) }

// result returns the result and writes the lock.
func (r *resolver) result() (*Result, error) {
	mod, err := modfile.Parse("go.mod", r.module.Files["go.mod"], nil)
	if err != nil {
		return nil, fmt.Errorf("modules of %s: %w", r.first.Notebook, err)
	}
	result := &Result{Module: r.module, Taken: r.taken(mod), Warnings: r.warnings}
	d, err := difference(mod, r.own)
	if err != nil {
		return nil, fmt.Errorf("modules of %s: %w", r.first.Notebook, err)
	}
	if r.Lock != "" && (!d.isNone() || len(r.imports) > 0) {
		result.LockError = r.writeLock(d)
	}
	return result, nil
}

// taken returns the modules that programs import, except those that gonbatch provides in the same
// version.
func (r *resolver) taken(mod *modfile.File) (taken []Taken) {
	own := versions(r.own)
	replaced := replacements(mod)
	for _, require := range mod.Require {
		path, version := require.Mod.Path, require.Mod.Version
		if to, ok := replaced[path]; ok {
			version = "=> " + to
		}
		if own[path] == version || path == gomodule.OwnPath || own[path] == "" && !r.importsFrom(mod, path) {
			continue
		}
		taken = append(taken, Taken{path, version, cmp.Or(r.why[path], "another module needs it")})
	}
	return taken
}

// importsFrom reports whether a program imports a package of a module.
func (r *resolver) importsFrom(mod *modfile.File, path string) bool {
	return slices.ContainsFunc(r.module.Imports, func(imported string) bool {
		return !gocell.IsStandard(imported) && gomodule.Containing(mod, imported).Path == path
	})
}
