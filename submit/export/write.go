package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gonbatch/internal/rundir"
	"gonbatch/submit/export/program"
	"gonbatch/submit/export/script"
)

// Write writes the module's files into dir. If dir does not exist yet, it appears with all files at
// once; otherwise Write replaces each file as a whole. Other files stay, except programs and
// scripts from an earlier Write.
func (m *Module) Write(dir string) error {
	_, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = m.writeNew(dir)
	case err == nil:
		err = errors.Join(m.writeInto(dir), m.removeStale(dir))
	}
	if err != nil {
		return fmt.Errorf("export %s: %w", m.Notebook, err)
	}
	return nil
}

// writeNew writes the files into a temporary folder next to dir and renames it.
func (m *Module) writeNew(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".*")
	if err != nil {
		return err
	}
	if err = os.Chmod(tmp, 0o755); err == nil {
		err = m.writeInto(tmp)
	}
	if err == nil {
		err = os.Rename(tmp, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// writeInto writes each file into an existing folder.
func (m *Module) writeInto(dir string) error {
	for _, name := range m.FileNames() {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := rundir.WriteFileAtomic(path, m.Files[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeStale removes programs and scripts of earlier exports from dir, and their folders if
// nothing else is in them.
func (m *Module) removeStale(dir string) error {
	files := os.DirFS(dir)
	for _, pattern := range []string{"*/main*.go", "*.sh"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			data, err := fs.ReadFile(files, name)
			generated := program.IsGenerated(data) || script.IsGenerated(data)
			if _, ours := m.Files[name]; ours || err != nil || !generated {
				continue
			}
			file := filepath.Join(dir, name)
			if err := os.Remove(file); err != nil {
				return err
			}
			if filepath.Dir(file) != dir {
				_ = os.Remove(filepath.Dir(file)) // Fails, as it should, if it has other files.
			}
		}
	}
	return nil
}
