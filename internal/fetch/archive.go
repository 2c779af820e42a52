package fetch

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// extractZip writes one member of a zip archive (a Python wheel is one) to dest, atomically.
func extractZip(archive, member, dest string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("open %s: %w", archive, err)
	}
	defer z.Close()
	i := slices.IndexFunc(z.File, func(f *zip.File) bool { return f.Name == member })
	if i < 0 {
		return fmt.Errorf("%s has no member %q", archive, member)
	}
	r, err := z.File[i].Open()
	if err != nil {
		return fmt.Errorf("open %s in %s: %w", member, archive, err)
	}
	defer r.Close()
	return WriteFile(dest, r, int64(z.File[i].UncompressedSize64), "")
}

// A Member is one file to take out of an archive.
type Member struct {
	Name   string // Name in the archive, or a pattern for path.Match; a leading "./" in the archive is ignored.
	Dest   string // Dest is the path that it is written to.
	SHA256 string // SHA256 in hexadecimal; empty: not checked.
	Size   int64  // Size in bytes; 0: not checked.
}

// ExtractTarGz writes members of a gzipped tar archive (an npm package is one) to their
// destinations, each atomically. It is an error if a member is missing.
func ExtractTarGz(archive string, members []Member) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // only read
	z, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s is not gzip: %w", archive, err)
	}
	missing := slices.Clone(members)
	for t := tar.NewReader(z); len(missing) > 0; {
		head, err := t.Next()
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s has no member %q", archive, missing[0].Name)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", archive, err)
		}
		i := slices.IndexFunc(missing, func(m Member) bool { return m.matches(head) })
		if i < 0 {
			continue
		}
		if err := WriteFile(missing[i].Dest, t, missing[i].Size, missing[i].SHA256); err != nil {
			return fmt.Errorf("extract %s from %s: %w", head.Name, archive, err)
		}
		missing = slices.Delete(missing, i, i+1)
	}
	return nil
}

func (m Member) matches(head *tar.Header) bool {
	ok, err := path.Match(m.Name, strings.TrimPrefix(head.Name, "./"))
	return ok && err == nil && head.Typeflag == tar.TypeReg
}
