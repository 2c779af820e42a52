package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/gocell"
	"gonbatch/internal/gomodule"
)

// A plain program has a go.mod of its own, as in a job: see gomodule.IsPlain. The kernel's own
// functions in a plain program need packages of gonbatch that need no other module, so for such a
// program gonbatch's go.mod counts as empty.

// Files in the folder of a plain program's modules.
const (
	// bareFile is gonbatch's go.mod without requirements, and overlayFile tells the go command
	// about it.
	bareFile    = "bare.mod"
	overlayFile = "overlay"
	// completeFile exists if the go command has completed go.mod and go.sum.
	completeFile = "complete"
	// unresolvedFile exists if a module was not found, but gonbatch's modules were enough.
	unresolvedFile = "unresolved"
)

// modDir returns the folder of the program's go.mod and go.sum.
func (b *builder) modDir() string {
	if b.plain {
		return b.plainDir
	}
	return b.Dir
}

func (b *builder) plainFile(name string) string { return filepath.Join(b.plainDir, name) }

// noteUnresolved notes that the program was built without all of its own modules, so that the next
// cell doesn't look for them.
func (b *builder) noteUnresolved() {
	if b.plainDir != "" && !b.plain {
		_ = os.WriteFile(b.plainFile(unresolvedFile), nil, 0o600) // Otherwise it does.
	}
}

// choosePlain decides whether the program is plain, and prepares its go.mod. If a module can't be
// found, the program is built with gonbatch's modules: they are on this machine.
func (b *builder) choosePlain(ctx context.Context) {
	imports, own := b.userImports(), b.ownMod()
	if own == nil || exists(filepath.Join(b.Dir, keepFile)) || exists(filepath.Join(b.Dir, "gonbatch__devices.go")) || !gomodule.IsPlain(own, imports) {
		return
	}
	b.plain = true
	b.plain = b.preparePlain(ctx, own, imports) == nil
}

// ownMod returns the go.mod with which each session starts: gonbatch's modules; nil if there is
// none.
func (b *builder) ownMod() *modfile.File {
	mod, err := readMod(filepath.Join(b.Seed, "go.mod"))
	if err != nil {
		return nil
	}
	return mod
}

func readMod(name string) (*modfile.File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, text, nil)
}

// userImports returns the imports of the program, without those of the kernel's own files and of
// the standard library.
func (b *builder) userImports() (imports []string) {
	for _, name := range b.userFiles() {
		if text, err := os.ReadFile(name); err == nil {
			imports = append(imports, gomodule.ImportsOf(text)...)
		}
	}
	imports = slices.DeleteFunc(imports, func(path string) bool { return gocell.IsStandard(path) || path == "C" })
	slices.Sort(imports)
	return slices.Compact(imports)
}

// userFiles returns the Go files of the program that aren't the kernel's own: GoNB's, and those
// that the user has put next to it.
func (b *builder) userFiles() (files []string) {
	entries, _ := os.ReadDir(b.Dir) // The compiler reports it.
	others := append(OwnFiles(), mainFiles[:]...)
	for _, entry := range entries {
		name := filepath.Join(b.Dir, entry.Name())
		if filepath.Ext(name) == ".go" && (name == b.mainFile() || !slices.Contains(others, entry.Name())) {
			files = append(files, name)
		}
	}
	return files
}

// preparePlain writes the go.mod of a plain program, and lets the go command complete it.
func (b *builder) preparePlain(ctx context.Context, own *modfile.File, imports []string) error {
	draft, err := b.plainDraft(own, imports)
	if err != nil {
		return err
	}
	switch b.plainDir = b.dirOf(draft, imports); {
	case exists(b.plainFile(completeFile)):
		return b.writeOverlay(draft)
	case exists(b.plainFile(unresolvedFile)):
		return errors.New("a module was not found before")
	}
	if err := errors.Join(b.writePlain(draft), b.writeOverlay(draft)); err != nil {
		return err
	}
	if err := b.completePlain(ctx); err != nil {
		return err
	}
	if err := b.recordFound(imports); err != nil {
		return err
	}
	found := b.plainDir
	if draft, err = b.plainDraft(own, imports); err != nil {
		return err
	}
	if b.plainDir = b.dirOf(draft, imports); b.plainDir != found {
		if err := errors.Join(os.RemoveAll(b.plainDir), os.Rename(found, b.plainDir)); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(b.plainFile(completeFile), nil, 0o600), b.writeOverlay(draft))
}

// dirOf returns the folder for the modules of a plain program, by everything that determines them.
func (b *builder) dirOf(draft *modfile.File, imports []string) string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %q %q %q %q", modfile.Format(draft.Syntax), imports, b.Verb, gocell.BuildTags(b.Flags), settings(b.Environ))
	return filepath.Join(b.Plans, "plain-"+hex.EncodeToString(sum.Sum(nil)[:8]))
}

// plainDraft returns the session's go.mod without the requirements that gonbatch brings, but with
// gonbatch's version of the modules that the program imports. What go.work uses, is replaced.
func (b *builder) plainDraft(own *modfile.File, imports []string) (*modfile.File, error) {
	mod, err := readMod(filepath.Join(b.Dir, "go.mod"))
	if err != nil {
		return nil, err
	}
	brought, chosen := map[string]string{}, map[string]bool{}
	for _, r := range own.Require {
		brought[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range slices.Clone(mod.Require) {
		if path := r.Mod.Path; brought[path] == r.Mod.Version {
			err = errors.Join(err, mod.DropRequire(path))
		} else {
			chosen[path] = true
		}
	}
	mod.Cleanup()
	err = errors.Join(err, mod.AddRequire(gomodule.OwnPath, brought[gomodule.OwnPath]), gomodule.RequireOwn(mod, own, imports, chosen), b.useWorkspace(mod))
	mod.Cleanup()
	return mod, err
}

// useWorkspace replaces the modules that go.work, if there is one, takes from folders.
func (b *builder) useWorkspace(mod *modfile.File) error {
	name := filepath.Join(b.Dir, "go.work")
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(name, text, nil)
	if err != nil {
		return err
	}
	for _, use := range work.Use {
		if dir := b.absolute(use.Path); filepath.Clean(dir) != b.Dir {
			_, useErr := gomodule.UseFolder(mod, dir)
			err = errors.Join(err, useErr)
		}
	}
	return err
}

// writePlain writes go.mod and go.sum of a plain program.
func (b *builder) writePlain(draft *modfile.File) error {
	if err := errors.Join(os.RemoveAll(b.plainDir), os.MkdirAll(b.plainDir, 0o755)); err != nil {
		return err
	}
	sum, _ := os.ReadFile(filepath.Join(b.Dir, "go.sum")) // The go command adds what is missing.
	return errors.Join(
		os.WriteFile(b.plainFile("go.mod"), modfile.Format(draft.Syntax), 0o600),
		os.WriteFile(b.plainFile("go.sum"), sum, 0o600))
}

// writeOverlay writes the overlay for a plain program: gonbatch without requirements.
func (b *builder) writeOverlay(draft *modfile.File) error {
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, r := range draft.Replace {
		if r.Old.Path == gomodule.OwnPath {
			overlay.Replace[filepath.Join(b.absolute(r.New.Path), "go.mod")] = b.plainFile(bareFile)
		}
	}
	text, err := json.Marshal(overlay)
	return errors.Join(err, os.WriteFile(b.plainFile(bareFile), modfile.Format(bareMod(draft).Syntax), 0o600),
		os.WriteFile(b.plainFile(overlayFile), text, 0o600))
}

// bareMod returns gonbatch's go.mod without requirements.
func bareMod(draft *modfile.File) *modfile.File {
	bare := new(modfile.File)
	_ = bare.AddModuleStmt(gomodule.OwnPath) // It never fails.
	if draft.Go != nil {
		_ = bare.AddGoStmt(draft.Go.Version) // It is valid in draft.
	}
	return bare
}

// moduleFlags are the go command's flags for finding the program's modules.
func (b *builder) moduleFlags() []string {
	if !b.plain {
		return nil
	}
	return []string{"-mod=mod", "-modfile=" + b.plainFile("go.mod"), "-overlay=" + b.plainFile(overlayFile)}
}

// listedPackage is a package in go list's output.
type listedPackage struct {
	ImportPath, Name string
	Imports          []string
	Error            *struct{ Err string }
}

// completePlain lets the go command download what the program needs, and complete go.mod. It
// returns an error if a package is missing, or if another package needs one of gonbatch's.
func (b *builder) completePlain(ctx context.Context) error {
	args := []string{"list", "-e", "-deps", "-json=ImportPath,Name,Imports,Error"}
	if b.isTest() {
		args = append(args, "-test")
	}
	cmd := exec.CommandContext(ctx, b.Go, append(slices.Concat(args, b.moduleFlags(), gocell.BuildTags(b.Flags)), ".")...)
	cmd.Dir, cmd.Env = b.Dir, b.moduleEnviron()
	output, err := cmd.Output()
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(output)); dec.More(); {
		var p listedPackage
		if err := dec.Decode(&p); err != nil {
			return err
		}
		switch {
		case p.Name == "main" || gomodule.IsOwn(p.ImportPath) || gocell.IsStandard(p.ImportPath):
		case p.Error != nil:
			return errors.New(p.Error.Err)
		case slices.ContainsFunc(p.Imports, gomodule.IsOwn):
			return fmt.Errorf("%s imports a package of gonbatch", p.ImportPath)
		}
	}
	return nil
}

// moduleEnviron returns the go command's environment for the program.
func (b *builder) moduleEnviron() []string {
	environ := append(slices.Clone(b.Environ), "PWD="+b.Dir)
	if b.plain {
		environ = append(environ, "GOWORK=off")
	}
	return environ
}

// recordFound requires the modules that were found for imports in the session's go.mod too, so that
// later programs, and %submit, use the same versions.
func (b *builder) recordFound(imports []string) error {
	name := filepath.Join(b.Dir, "go.mod")
	mod, err := readMod(name)
	if err != nil {
		return err
	}
	found, err := readMod(b.plainFile("go.mod"))
	if err != nil {
		return err
	}
	for _, path := range imports {
		in := gomodule.Containing(found, path)
		if in.Path == "" || in.Version == gomodule.LocalVersion || gomodule.Containing(mod, path).Path == in.Path {
			continue
		}
		if err := mod.AddRequire(in.Path, in.Version); err != nil {
			return err
		}
	}
	mod.Cleanup()
	sum, _ := os.ReadFile(filepath.Join(b.Dir, "go.sum")) // The go command adds what is missing.
	more, _ := os.ReadFile(b.plainFile("go.sum"))
	return errors.Join(
		os.WriteFile(name, modfile.Format(mod.Syntax), 0o644),
		os.WriteFile(filepath.Join(b.Dir, "go.sum"), gomodule.JoinSums(sum, more), 0o644))
}
