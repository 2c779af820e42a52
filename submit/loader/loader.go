// Package loader finds shared libraries as the dynamic loader does, without loading them: in
// LD_LIBRARY_PATH, then in the list that ldconfig keeps.
//
//	libraries := loader.New(ctx, shell.Runner, shell.Getenv)
//	libraries.Find("libmpi.so.40") // [/usr/lib/x86_64-linux-gnu/libmpi.so.40]
//
// It doesn't know the folders that a program or a library names itself (its run path).
package loader

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"gonbatch/submit"
)

// Libraries are the libraries that the loader knows. It may be used concurrently.
type Libraries struct {
	folders []string
	known   func() string
}

// New returns the libraries of a process with this environment. It asks ldconfig once, when a
// library is in no folder of LD_LIBRARY_PATH.
func New(ctx context.Context, runner submit.Runner, getenv func(string) string) Libraries {
	return Libraries{
		folders: filepath.SplitList(getenv("LD_LIBRARY_PATH")),
		known:   sync.OnceValue(func() string { return ldconfig(ctx, runner) }),
	}
}

// Find returns the paths of the libraries with that soname, in the loader's order. There may be one
// for each architecture, of which the loader takes the first that fits.
func (l Libraries) Find(soname string) (paths []string) {
	for _, folder := range l.folders {
		path := filepath.Join(folder, soname)
		if _, err := os.Stat(path); folder != "" && err == nil {
			paths = append(paths, path)
		}
	}
	for line := range strings.Lines(l.known()) {
		// "	libmpi.so.40 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libmpi.so.40"
		name, path, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if ok && strings.HasPrefix(name, soname+" ") {
			paths = append(paths, path)
		}
	}
	return paths
}

// ldconfig lists the loader's libraries. Users' PATH often lacks /sbin. If there is no list, it
// returns "".
func ldconfig(ctx context.Context, runner submit.Runner) string {
	for _, name := range []string{"ldconfig", "/sbin/ldconfig"} {
		if out, err := runner.Run(ctx, name, "-p"); err == nil {
			return string(out)
		}
	}
	return ""
}
