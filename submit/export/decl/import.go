package decl

import (
	"gonbatch/internal/gocell"
	"gonbatch/submit/export/nbcell"
)

// Import is one import that the kernel remembers.
type Import struct {
	// Name is the explicit name, or "".
	Name, Path string
	// Doc is the comment above it, with its line ends.
	Doc string
	// Cell and Line are its place.
	Cell *nbcell.Cell
	Line int
}

// key returns the key that distinguishes imports.
func (i *Import) key() string { return gocell.ImportKey(i.Name, i.Path) }
