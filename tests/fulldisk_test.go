package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/tmpfs"
)

// TestFullRunRoot checks that files that no run needs any more are removed to make room for the
// next run. If that is not enough, the error says what takes the space and what to do, and leaves
// nothing of the new run behind.
func TestFullRunRoot(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	root := filepath.Join(u.folder, "runs")
	tmpfs.Mount(t, root, "size=600m")
	name := u.write(t, "small.ipynb", "%%\nfmt.Println(\"done\")")
	u.mustSubmit(t, "--local", name)
	if err := os.RemoveAll(u.run(t).Path()); err != nil {
		t.Fatal(err)
	}
	store := rundir.Store(root, os.Geteuid())
	if err := os.WriteFile(filepath.Join(store, strings.Repeat("0", 64)+"-444"), make([]byte, 40<<20), 0o444); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(root, "filler"))
	wantAll(t, u.mustSubmit(t, "--local", name), "done\n")
	before := len(dirs(t, root))
	fill(t, filepath.Join(root, "more"))
	out, err := u.submit(t, "--local", name)
	if err == nil {
		t.Error("there was room for another run")
	}
	wantAll(t, out, "no space left on device", store, " MB", "--run-root")
	if after := dirs(t, root); len(after) != before {
		t.Errorf("left: %q", after)
	}
}

// dirs returns the names of the folders in a folder.
func dirs(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}
