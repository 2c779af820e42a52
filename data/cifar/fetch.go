package cifar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/fetch"
)

// Fetch makes sure that dir has the dataset. It uses what is there: the files, Folder with the
// files, or the archive, whose SHA-256 it checks and which it leaves there. Otherwise it downloads
// the archive, and removes it when it has extracted the files. It blocks. Several goroutines and
// processes may call it concurrently: one downloads, the others wait. progress may be nil.
func (s Set) Fetch(ctx context.Context, dir string, progress io.Writer) error {
	have := func() bool { return s.find(dir) != "" }
	err := fetch.Once(ctx, filepath.Join(dir, s.Package), progress, have, func() error { return s.get(ctx, dir, progress) })
	if err != nil {
		return fmt.Errorf("%s: %w", s.Package, err)
	}
	return nil
}

// get downloads the archive, unless it is there, and extracts the files. The caller holds dir's
// lock.
func (s Set) get(ctx context.Context, dir string, progress io.Writer) error {
	path := filepath.Join(dir, s.Archive.Name)
	if fetch.Have(path, s.Archive.Size) {
		if err := fetch.Verify(path, s.Archive.Size, s.Archive.SHA256); err != nil {
			return fmt.Errorf("%w; remove it, and it is downloaded again", err)
		}
		return s.extract(path, dir)
	}
	err := fetch.File(ctx, s.Archive, path, fetch.Options{Progress: progress})
	if failed, ok := errors.AsType[*fetch.Error](err); ok {
		failed.Fix += fmt.Sprintf("; if you have its folder %s already, copy or link it to %s", s.Folder, filepath.Join(dir, s.Folder))
		if info, err := os.Stat(path); err == nil {
			failed.Fix += fmt.Sprintf("; the file that is at %s has %d bytes, not %d", path, info.Size(), s.Archive.Size)
		}
	}
	if err != nil {
		return err
	}
	if err := s.extract(path, dir); err != nil {
		return err
	}
	return os.Remove(path)
}

// extract extracts the files to Folder in dir.
func (s Set) extract(archive, dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, s.Folder), 0o755); err != nil {
		return err
	}
	var members []fetch.Member
	for _, name := range s.files() {
		members = append(members, fetch.Member{Name: s.Folder + "/" + name, Dest: filepath.Join(dir, s.Folder, name)})
	}
	return fetch.ExtractTarGz(archive, members)
}
