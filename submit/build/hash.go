package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/mod/modfile"

	"gonbatch/internal/source"
	"gonbatch/submit/export"
)

// hashVersion changes when this package builds differently, so that old programs are not found.
const hashVersion = "gonbatch build 3"

// contentHash returns the hash of everything the programs are made from: the module's files, the
// cells' flags, the compiler and its settings, and go.mod's local replacement modules, including
// gonbatch itself.
func contentHash(m *export.Module, tools *toolchain) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, hashVersion, baseFlags)
	for _, name := range envNames {
		fmt.Fprintf(sum, "%s=%q\n", name, tools.env[name])
	}
	for _, cell := range m.Programs() {
		fmt.Fprintf(sum, "cell %q %q %v\n", cell.Name, cell.BuildFlags, cell.Test)
	}
	for _, name := range m.FileNames() {
		if name == "go.mod" {
			continue // It contains the source folder's path; only the folder's content matters.
		}
		if strings.HasSuffix(name, ".sh") {
			continue // Scripts are not compiled.
		}
		fmt.Fprintf(sum, "file %q %d\n", name, len(m.Files[name]))
		sum.Write(m.Files[name])
	}
	if err := hashMod(sum, m); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// hashMod adds go.mod, with the content of local modules in place of their folders.
func hashMod(sum io.Writer, m *export.Module) error {
	mod, err := modfile.Parse("go.mod", m.Files["go.mod"], nil)
	if err != nil {
		return err
	}
	for _, r := range mod.Require {
		fmt.Fprintf(sum, "require %s\n", r.Mod)
	}
	if mod.Go != nil {
		fmt.Fprintf(sum, "go %s\n", mod.Go.Version)
	}
	if mod.Toolchain != nil {
		fmt.Fprintf(sum, "toolchain %s\n", mod.Toolchain.Name)
	}
	for _, r := range mod.Replace {
		with := r.New.String()
		if r.New.Version == "" {
			if with, err = hashFolder(m, r.New.Path); err != nil {
				return err
			}
		}
		fmt.Fprintf(sum, "replace %s => %s\n", r.Old, with)
	}
	return nil
}

// hashFolder returns the hash of a local module; for gonbatch itself only if a program imports it.
func hashFolder(m *export.Module, dir string) (string, error) {
	if dir != m.SourceDir {
		return source.Hash(os.DirFS(dir))
	}
	for _, path := range m.Imports {
		if path == "gonbatch" || strings.HasPrefix(path, "gonbatch/") {
			return source.HashDir(dir)
		}
	}
	return "unused", nil
}
