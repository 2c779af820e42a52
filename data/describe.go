package data

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Described is a Dataset that has something to say in the log of a run: what its examples depend on
// besides its files, such as the decoder of its images.
type Described interface {
	Dataset
	// Describe returns a line without its end; "" if there is nothing to say.
	Describe() string
}

// Describe returns the line of a dataset, or "". A dataset that wraps another one returns the
// other's.
func Describe(ds Dataset) string {
	if ds, ok := ds.(Described); ok {
		return ds.Describe()
	}
	return ""
}

// Fingerprinted is a Dataset that knows what its examples are made from.
type Fingerprinted interface {
	Dataset
	// Fingerprint returns a short text that changes with the examples, such as a hash of the names
	// and sizes of their files and of the settings that change their values.
	Fingerprint() string
}

var (
	_ Described = (*Folder)(nil)
	_ Described = part{}
	_ Described = augmented{}
	_ Described = (*serial)(nil)
)

// Describe says what decodes the JPEGs, if there are any.
func (f *Folder) Describe() string {
	if !slices.ContainsFunc(f.paths, isJPEG) {
		return ""
	}
	decoder := JPEGDecoder()
	if f.decoder.turbo == nil {
		decoder, _, _ = strings.Cut(decoder, "\n") // The rest says what to install.
	}
	return fmt.Sprintf("JPEGs of %s are decoded by %s", f.config.Name, decoder)
}

// isJPEG reports whether a file is a JPEG, by its name.
func isJPEG(path string) bool {
	return slices.Contains([]string{".jpeg", ".jpg"}, strings.ToLower(filepath.Ext(path)))
}

// Describe implements Described.
func (p part) Describe() string { return Describe(p.Dataset) }

// Describe implements Described.
func (a augmented) Describe() string { return Describe(a.Dataset) }

// Describe implements Described.
func (s *serial) Describe() string { return Describe(s.Dataset) }
