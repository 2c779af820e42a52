package folder

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func save(t *testing.T, root string, step int64, content string, exchange func(a, b string) error) {
	t.Helper()
	d, err := NewDraft(root, step)
	ok(t, err)
	if exchange != nil {
		d.exchange = exchange
	}
	ok(t, d.Write("data", func(w io.Writer) error { _, err := io.WriteString(w, content); return err }))
	ok(t, d.Commit(Manifest{}), d.Discard(), errors.Join(d.Litter()...))
}

func content(t *testing.T, path string) string {
	t.Helper()
	c, err := Open(path)
	ok(t, err)
	var text []byte
	ok(t, c.Read("data", func(r io.Reader, _ int64) error { text, err = io.ReadAll(r); return err }))
	ok(t, c.Close())
	return string(text)
}

func names(t *testing.T, root string) []string {
	t.Helper()
	entries, err := os.ReadDir(root)
	ok(t, err)
	var all []string
	for _, entry := range entries {
		all = append(all, entry.Name())
	}
	return all
}

// TestReplace saves a step again, on file systems that can and can't exchange two folders
// atomically.
func TestReplace(t *testing.T) {
	tests := []struct {
		name     string
		exchange func(a, b string) error
	}{
		{name: "exchanged"},
		{name: "renamed twice", exchange: func(string, string) error { return errors.ErrUnsupported }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			save(t, root, 7, "old", tt.exchange)
			save(t, root, 7, "new", tt.exchange)
			if got := names(t, root); len(got) != 1 || content(t, filepath.Join(root, got[0])) != "new" {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestKilledBetweenRenames stops at the moment when the step's folder doesn't have its own name.
func TestKilledBetweenRenames(t *testing.T) {
	root := t.TempDir()
	save(t, root, 7, "old", nil)
	ok(t, os.Rename(filepath.Join(root, Name(7)), aside(root, replacedPrefix, 7)))
	all, err := List(root)
	ok(t, err)
	if len(all) != 1 || !all[0].Valid() || all[0].Step != 7 || content(t, all[0].Path) != "old" {
		t.Fatalf("%+v", all)
	}
	save(t, root, 8, "next", nil) // It completes the interrupted replacement.
	if got := names(t, root); len(got) != 2 || content(t, filepath.Join(root, Name(7))) != "old" {
		t.Errorf("%q", got)
	}
	ok(t, os.Mkdir(aside(root, replacedPrefix, 7), 0o777))
	ok(t, os.Mkdir(aside(root, removingPrefix, 3), 0o777))
	ok(t, os.Mkdir(filepath.Join(root, ".saving-mine"), 0o777)) // Another program's.
	save(t, root, 9, "last", nil)
	if got := names(t, root); len(got) != 4 || got[0] != ".saving-mine" {
		t.Errorf("%q", got)
	}
}
