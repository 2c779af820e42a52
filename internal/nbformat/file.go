package nbformat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is the content of a notebook's file at one moment. It is read only once, because an editor
// may save the notebook at any time.
type File struct {
	// Path is the file's path.
	Path string
	// SHA256 is the hash of the file.
	SHA256 string
	text   []byte
}

// Read reads the notebook in the file at path, without the outputs of its cells: nothing here needs
// them, and they may be big. Parse keeps them.
func Read(path string) (*Notebook, error) {
	file, err := Load(path)
	if err != nil {
		return nil, err
	}
	return file.Parse()
}

// Load reads the notebook file at path, and refuses a file that is not a notebook.
func Load(path string) (*File, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("notebook %s: no such file", path)
	case err != nil:
		return nil, fmt.Errorf("notebook %s: %w", path, err)
	case info.IsDir():
		return nil, fmt.Errorf("notebook %s: is a directory; give the .ipynb file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("notebook %s: is a pipe or a device; give a regular file", path)
	case filepath.Ext(path) == ".go":
		return nil, fmt.Errorf("notebook %s: is a Go file; if it is a notebook of Jupytext's, convert it: jupytext --to ipynb %s", path, filepath.Base(path))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("notebook %s: %w", path, err)
	}
	sum := sha256.Sum256(text)
	f := &File{Path: path, SHA256: hex.EncodeToString(sum[:]), text: text}
	_, err = f.Parse()
	return f, err
}

// Parse returns the notebook in the file, without outputs. Each call returns a new one, which the
// caller may change.
func (f *File) Parse() (*Notebook, error) {
	nb, err := Parse(f.Path, f.text)
	if err != nil {
		return nil, err
	}
	for _, c := range nb.Cells {
		if c.fields["outputs"] != nil {
			c.fields["outputs"] = json.RawMessage("[]")
		}
	}
	return nb, nil
}

// Text returns the file's content.
func (f *File) Text() []byte { return f.text }

// DropOrigin makes the file's notebook one of its own: a run's notebook.ipynb that is submitted
// again, and may have been edited, has its own cells.
func (f *File) DropOrigin() error {
	nb, err := f.Parse()
	if err != nil || nb.Origin == nil {
		return err
	}
	if err := nb.DropOrigin(); err != nil {
		return err
	}
	f.text, err = nb.Marshal()
	return err
}
