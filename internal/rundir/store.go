package rundir

import (
	"fmt"
	"path/filepath"
)

// Store is the folder in a run root of the big files that the runs of a user share, where these lie
// on another file system than their sources: each is there once, named by its content, and runs
// have links to it.
func Store(root string, uid int) string { return filepath.Join(root, fmt.Sprintf(".store-%d", uid)) }

// Root is the folder that the run directory lies in, with others.
func (d Dir) Root() string { return filepath.Dir(d.path) }
