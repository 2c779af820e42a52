package build

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCheckErrors: a check reports cells that do not compile as a build does.
func TestCheckErrors(t *testing.T) {
	for _, tt := range []struct {
		name  string
		cells []string
	}{
		{"in a main cell", []string{"%%\nfmt.Println(missing)"}},
		{"in shared code", []string{"func f() int { return \"x\" }", "%%\nf()", "%%\nprintln(2)"}},
		{"an import", []string{"import \"example.com/none\"\n%%\nnone.F()"}},
		{"in a test", []string{"%test\nfunc TestX(t *testing.T) { missing() }"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, dir := written(t, cells(tt.cells...))
			_, err := Check(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
			var checked, built *Error
			if !errors.As(err, &checked) || len(checked.Problems) == 0 {
				t.Fatalf("got %v, want an *Error with problems", err)
			}
			_, err = Build(t.Context(), dir, m, Options{CacheDir: t.TempDir()})
			if !errors.As(err, &built) {
				t.Fatalf("Build: %v, want an *Error", err)
			}
			if diff := cmp.Diff(built.Problems, checked.Problems); diff != "" {
				t.Errorf("a check finds something else than a build (-build +check):\n%s", diff)
			}
		})
	}
}

// TestCheckRemembers: a second check of the same programs uses the first one's result.
func TestCheckRemembers(t *testing.T) {
	m, dir := written(t, cells("%%\nfmt.Printf(\"%d\\n\", \"x\")"))
	opt := Options{CacheDir: t.TempDir()}
	first, err := Check(t.Context(), dir, m, opt)
	if err != nil || len(first) != 1 {
		t.Fatalf("problems %v, %v; want one", first, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "cell-1")); err != nil {
		t.Fatal(err)
	}
	second, err := Check(t.Context(), dir, m, opt)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
}

func TestKeepNewest(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for i, name := range []string{"old.json", "middle.json", "new.json", "other"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now, now.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if err := keepNewest(dir, 2); err != nil {
		t.Fatal(err)
	}
	got, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		got[i] = filepath.Base(got[i])
	}
	if diff := cmp.Diff([]string{"middle.json", "new.json", "other"}, got); diff != "" {
		t.Error(diff)
	}
}
