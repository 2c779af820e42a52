package rundir

import (
	"fmt"
	"path/filepath"
)

// Store returns the path of the folder in a run root for the big files that a user's runs share, if
// the sources of these files are on another file system. It has each file once, named by its
// content, and runs link to it.
func Store(root string, uid int) string { return filepath.Join(root, fmt.Sprintf(".store-%d", uid)) }

// Root returns the path of the folder that contains the run directory and others.
func (d Dir) Root() string { return filepath.Dir(d.path) }
