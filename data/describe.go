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

// Describe returns the line of a dataset, or "". The datasets of this package that wrap another one
// return the other's.
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

// Fingerprint returns that of a dataset, or "". The datasets of this package that wrap another one
// add to its fingerprint what they do, such as the numbers of a Range.
func Fingerprint(ds Dataset) string {
	if ds, ok := ds.(Fingerprinted); ok {
		return ds.Fingerprint()
	}
	return ""
}

// Classed is a Dataset whose classes have names, such as a Folder.
type Classed interface {
	Dataset
	// Classes returns the names. A label is the index of a class in this list.
	Classes() []string
}

// Classes returns the names of the classes of a dataset, or nil. The datasets of this package that
// wrap another one, such as the parts of a Split, have the other's.
func Classes(ds Dataset) []string {
	if ds, ok := ds.(Classed); ok {
		return ds.Classes()
	}
	return nil
}

// Columns returns the names of the columns of a dataset's input and of its labels, as a table has
// them, or nil. The datasets of this package that wrap another one have the other's.
func Columns(ds Dataset) (inputs, labels []string) {
	if ds, ok := ds.(interface {
		Columns() (inputs, labels []string)
	}); ok {
		return ds.Columns()
	}
	return nil, nil
}

var (
	_ Described     = (*Folder)(nil)
	_ Fingerprinted = (*Folder)(nil)
	_ Classed       = (*Folder)(nil)
)

// Describe says what decodes the JPEGs, if there are any.
func (f *Folder) Describe() string {
	if !slices.ContainsFunc(f.paths, isJPEG) {
		return ""
	}
	decoder, _, _ := strings.Cut(JPEGDecoder(), "\n") // The rest says what to install.
	return fmt.Sprintf("JPEGs of %s are decoded by %s", f.config.Name, decoder)
}

// isJPEG reports whether a file is a JPEG, by its name.
func isJPEG(path string) bool {
	return slices.Contains([]string{".jpeg", ".jpg"}, strings.ToLower(filepath.Ext(path)))
}
