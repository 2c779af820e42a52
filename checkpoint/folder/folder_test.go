package folder_test

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gonbatch/checkpoint/folder"
)

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func contains(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v\nwant %q in it", err, text)
		}
	}
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

func TestCommit(t *testing.T) {
	root := filepath.Join(t.TempDir(), "not", "there", "yet")
	d, err := folder.NewDraft(root, 12)
	ok(t, err)
	ok(t, d.Write("a.txt", text("hello")), d.Write("empty", text("")))
	if all, err := folder.List(root); len(all) != 0 || err != nil {
		t.Errorf("before it is committed: %+v, %v", all, err)
	}
	m := folder.Manifest{
		WorldSize: 3, CodeHash: "c", Versions: map[string]string{"go": "1"}, Metrics: folder.Metrics{"nan": math.NaN(), "inf": math.Inf(1), "x": 1e-300},
		Progress: map[string]json.RawMessage{"p": json.RawMessage(`{"a":[1,{"b":"<&>"}]}`)},
	}
	ok(t, d.Commit(m), d.Discard())

	path := filepath.Join(root, "step-00000012")
	ok(t, folder.Verify(path))
	info := folder.Stat(path)
	ok(t, info.Err)
	want := m
	want.Step, want.Files = 12, []folder.File{
		{Name: "a.txt", Size: 5, SHA256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"},
		{Name: "empty", SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	}
	if diff := cmp.Diff(want, info.Manifest, cmpopts.EquateNaNs(), cmpopts.IgnoreFields(folder.Manifest{}, "Time")); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
	if info.Time.IsZero() || info.Path != path {
		t.Errorf("%+v", info)
	}
}

// TestVerify changes a file without changing its size: List can't detect that, reading does.
func TestVerify(t *testing.T) {
	root := t.TempDir()
	d, err := folder.NewDraft(root, 1)
	ok(t, err)
	ok(t, d.Write("data", text("weights")), d.Commit(folder.Manifest{}))
	path := filepath.Join(root, folder.Name(1))
	ok(t, os.WriteFile(filepath.Join(path, "data"), []byte("Weights"), 0o666))
	if info := folder.Stat(path); !info.Valid() {
		t.Error(info.Err)
	}
	contains(t, folder.Verify(path), path, "data is damaged", "SHA-256")
}

func TestDraftRefuses(t *testing.T) {
	root := t.TempDir()
	_, err := folder.NewDraft(root, -1)
	contains(t, err, "step -1")
	d, err := folder.NewDraft(root, 1)
	ok(t, err)
	for _, name := range []string{"", ".", "..", "a/b", "/a", ".hidden", "a\x00", "checkpoint.json"} {
		contains(t, d.Write(name, text("")), "can't be a checkpoint's file")
	}
	ok(t, d.Write("a", text("")))
	contains(t, d.Write("a", text("")), "file exists")
	contains(t, d.Write("b", func(io.Writer) error { return errors.New("gone wrong") }), "b: gone wrong", "step 1", root)
	contains(t, d.Commit(folder.Manifest{Progress: map[string]json.RawMessage{"p": json.RawMessage("{")}}), "checkpoint.json")
	ok(t, d.Discard(), d.Discard())
	entries, err := os.ReadDir(root)
	ok(t, err)
	if len(entries) != 0 {
		t.Errorf("a discarded draft leaves %v", entries)
	}
}

// TestAnotherSaver lets a second process clean up files that it takes for litter: the first process
// gets an error.
func TestAnotherSaver(t *testing.T) {
	root := t.TempDir()
	first, err := folder.NewDraft(root, 1)
	ok(t, err)
	second, err := folder.NewDraft(root, 2)
	ok(t, err)
	contains(t, first.Write("a", text("")), "is another process saving to "+root)
	ok(t, second.Commit(folder.Manifest{}))
}

func TestRemove(t *testing.T) {
	root := t.TempDir()
	d, err := folder.NewDraft(root, 1)
	ok(t, err)
	ok(t, d.Commit(folder.Manifest{}))
	ok(t, os.Mkdir(filepath.Join(root, folder.Name(2)), 0o777))
	ok(t, folder.Remove(root, 1))
	contains(t, folder.Remove(root, 1), "no such file")
	contains(t, folder.Remove(root, 2), "isn't a checkpoint's folder")
}
