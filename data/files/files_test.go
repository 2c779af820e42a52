package files_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/data/files"
)

// write writes files into a new folder, and returns it.
func write(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFind(t *testing.T) {
	dir := write(t, "a-08.tar", "a-09.tar", "a-10.tar", "b-9.tar", "b-10.tar", "c[1].csv", "c1.csv", "d{.csv")
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		pattern, want, err string
	}{
		{pattern: "a-{08..10}.tar", want: "a-08.tar a-09.tar a-10.tar"},
		{pattern: "b-{9..10}.tar", want: "b-9.tar b-10.tar"},
		{pattern: "b-*.tar", want: "b-10.tar b-9.tar"},
		{pattern: "{b-9,a-08,c1}.{tar,csv}", err: "b-9.csv: no such file"},
		{pattern: "{b-9,a-08}.{tar}", err: "{tar} is neither a list"},
		{pattern: "{b-9,a-08}.tar", want: "b-9.tar a-08.tar"},
		{pattern: "{b-?,a-08}.tar", want: "b-9.tar a-08.tar"},
		{pattern: "c[1].csv", want: "c[1].csv"},
		{pattern: "c[12].csv", want: "c1.csv"},
		{pattern: "a-{08..11}.tar", err: "a-11.tar: no such file"},
		{pattern: "a-{10..08}.tar", err: "{10..08} is not a range"},
		{pattern: "a-{0..99999999}.tar", err: "is not a range of at most"},
		{pattern: strings.Repeat("{0..999}", 3), err: "more than 1048576 files"},
		{pattern: "a-{0..x}.tar", err: "{0..x} is not a range"},
		{pattern: "a-{..}.tar", err: "{..} is not a range"},
		{pattern: "a-{08..10.tar", err: "a { needs a }"},
		{pattern: "a-{0{1,2}}.tar", err: "a { needs a }"},
		{pattern: "{a-*,a-08}.tar", err: "a-08.tar twice"},
		{pattern: "x*", err: "no file matches"},
		{pattern: "folder", err: "folder is not a file"},
		{pattern: "[", err: "syntax error in pattern"},
	}
	for _, tt := range tests {
		t.Run(tt.pattern, func(t *testing.T) {
			found, err := files.Find(filepath.Join(dir, tt.pattern))
			if err != nil || tt.err != "" {
				if err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got %v, want %q", err, tt.err)
				}
				return
			}
			var names []string
			for _, f := range found {
				names = append(names, filepath.Base(f.Path))
			}
			if got := strings.Join(names, " "); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	for pattern, want := range map[string]string{
		"a/train-{0000..0099}.tar": "train", "a/train.tar": "train", "a/train-{0..3}": "train", "photos/*.csv": "photos", "photos/{train,val}-*.tar": "photos",
		"x/part-?_[ab].csv": "part", "x/2024.data.csv": "2024.data", "/*.csv": "/",
	} {
		if got := files.Name(pattern); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}

func TestOpenNoticesChanges(t *testing.T) {
	path := filepath.Join(write(t, "a"), "a")
	found, err := files.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := found[0].Open()
	if err := errors.Join(err, file.Close(), os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	if _, err := found[0].Open(); err == nil || !strings.Contains(err.Error(), "has changed") {
		t.Errorf("got %v", err)
	}
}

// content reads all of a Kept.
func content(t *testing.T, kept *files.Kept) string {
	t.Helper()
	text, err := io.ReadAll(io.NewSectionReader(kept, 0, kept.Size))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestKeep: the result is built once, however many ask for it at once, and again when a file
// changes.
func TestKeep(t *testing.T) {
	path := filepath.Join(write(t, "a"), "a")
	dir := filepath.Join(t.TempDir(), "new")
	var built atomic.Int32
	keep := func(kind string) (*files.Kept, error) {
		found, err := files.Find(path)
		if err != nil {
			return nil, err
		}
		return files.Keep(files.Derived{Files: found, Kind: kind, Dir: dir}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s of %d bytes", kind, found[0].Size)
			built.Add(1)
			return err
		})
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			kept, err := keep("index")
			if err != nil {
				t.Error(err)
				return
			}
			if got := content(t, kept); got != "index of 1 bytes" {
				t.Errorf("got %q", got)
			}
		})
	}
	group.Wait()
	if n := built.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
	old, err := keep("index")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"index", "rows", "index"} {
		kept, err := keep(kind)
		if err != nil {
			t.Fatal(err)
		}
		if got := content(t, kept); got != kind+" of 6 bytes" {
			t.Errorf("got %q", got)
		}
	}
	if got := content(t, old); got != "index of 1 bytes" {
		t.Errorf("an open one changed to %q", got)
	}
	if n := built.Load(); n != 3 {
		t.Errorf("built %d times", n)
	}
}

// TestKeepFails: a result that can't be built leaves nothing.
func TestKeepFails(t *testing.T) {
	found, err := files.Find(filepath.Join(write(t, "a"), "a"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	broken := errors.New("broken")
	for _, dir := range []string{dir, ""} {
		_, err = files.Keep(files.Derived{Files: found, Kind: "x", Dir: dir}, func(w io.Writer) error {
			_, err := io.WriteString(w, "half")
			return errors.Join(err, broken)
		})
		if !errors.Is(err, broken) || strings.Contains(err.Error(), dir) && dir != "" {
			t.Errorf("got %v", err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), ".lock") }) {
		t.Errorf("%v is left: %v", entries, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = files.Keep(files.Derived{Files: found, Kind: "y", Dir: filepath.Join(file, "x")}, nil); err == nil || !strings.Contains(err.Error(), "set GONBATCH_DATA to a folder") {
		t.Errorf("got %v", err)
	}
}
