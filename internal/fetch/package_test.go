package fetch_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/fetch"
)

// stub puts a script named cmd first on PATH.
func stub(t *testing.T, cmd, script string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, cmd)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

func zipOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tgzOf(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range names {
		text := "content of " + name
		head := &tar.Header{Name: name, Size: int64(len(text)), Mode: 0o644, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// pipScript is a pip that serves the wheel in $WHEEL: it understands the relevant arguments and
// records each call.
const pipScript = `
echo "$@" >>"$CALLS"
[ "$1 $2 $3" = "-m pip download" ] || { echo "unexpected: $*"; exit 9; }
while [ $# -gt 0 ]; do [ "$1" = --dest ] && dest=$2; shift; done
cp "$WHEEL" "$dest/name-1.0-py3-none-any.whl"
`

func TestPipWheel(t *testing.T) {
	wheel := zipOf(t, map[string]string{"pkg/lib.so": "library", "pkg/__init__.py": ""})
	tests := []struct {
		name    string
		script  string
		sum     string
		member  string
		wantErr []string
	}{
		{name: "plain", script: pipScript, sum: sum(wheel), member: "pkg/lib.so"},
		{name: "wrong checksum", script: pipScript, sum: sum(nil), member: "pkg/lib.so", wantErr: []string{"wrong checksum", sum(wheel), "pip cache purge"}},
		{name: "no such member", script: pipScript, sum: sum(wheel), member: "pkg/other.so", wantErr: []string{`no member "pkg/other.so"`}},
		{name: "pip fails", script: "echo 'ERROR: No matching distribution found for name==1.0' >&2; exit 1", member: "pkg/lib.so",
			wantErr: []string{"python3 -m pip download --no-deps --only-binary=:all: --ignore-requires-python --dest . name==1.0: exit status 1: ERROR: No matching distribution", "pip config list"}},
		{name: "pip saves nothing", script: "exit 0", member: "pkg/lib.so", wantErr: []string{"expected one file *.whl, got 0"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "wheel"), wheel)
			t.Setenv("WHEEL", filepath.Join(dir, "wheel"))
			t.Setenv("CALLS", filepath.Join(dir, "calls"))
			stub(t, "python3", tc.script)
			dest := filepath.Join(dir, "out", "lib.so")
			w := fetch.Wheel{Requirement: "name==1.0", SHA256: tc.sum, Member: tc.member}
			for range 2 { // The second call finds the file, or fails in the same way.
				err := fetch.PipWheel(context.Background(), w, dest, fetch.Options{})
				checkError(t, err, tc.wantErr, nil)
			}
			if tc.wantErr != nil {
				if exists(dest) {
					t.Error("the file is there in spite of the error")
				}
			} else {
				checkFile(t, dest, []byte("library"))
				calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
				if n := strings.Count(string(calls), "\n"); n != 1 {
					t.Errorf("pip ran %d times, want 1:\n%s", n, calls)
				}
			}
			checkNoLeftovers(t, filepath.Dir(dest))
		})
	}
}

func TestPipWheelWithoutPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := fetch.PipWheel(context.Background(), fetch.Wheel{Requirement: "name==1.0"}, filepath.Join(t.TempDir(), "lib.so"), fetch.Options{})
	checkError(t, err, []string{"python3 is not on PATH"}, nil)
}

func TestPipWheelCancelled(t *testing.T) {
	stub(t, "python3", "sleep 600 & wait")
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	begin, dir := time.Now(), t.TempDir()
	err := fetch.PipWheel(ctx, fetch.Wheel{Requirement: "name==1.0"}, filepath.Join(dir, "lib.so"), fetch.Options{})
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > time.Minute {
		t.Errorf("after %v: %v", time.Since(begin), err)
	}
	checkNoLeftovers(t, dir)
}

func TestPipWheelRemovesWhatAnEndedProcessLeft(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".lib.so.123.dir", "half.whl"), content)
	write(t, filepath.Join(dir, ".lib.so.456.tmp"), content)
	stub(t, "python3", "exit 1")
	_ = fetch.PipWheel(context.Background(), fetch.Wheel{Requirement: "name==1.0"}, filepath.Join(dir, "lib.so"), fetch.Options{})
	checkNoLeftovers(t, dir)
}

const npmScript = `
echo "$@" >>"$CALLS"
[ "$1 $2" = "pack name@1.0.0" ] || { echo "unexpected: $*"; exit 9; }
cp "$TGZ" name-1.0.0.tgz
`

func TestNpmPack(t *testing.T) {
	tgz := tgzOf(t, "package/package.json", "./package/data/a", "package/data/b")
	text := func(name string) []byte { return []byte("content of " + name) }
	tests := []struct {
		name    string
		sum     string
		second  fetch.Member
		wantErr []string
	}{
		{name: "plain", sum: sum(tgz), second: fetch.Member{Name: "package/data/b", SHA256: sum(text("package/data/b"))}},
		{name: "by pattern", sum: sum(tgz), second: fetch.Member{Name: "package/*/b"}},
		{name: "wrong checksum", sum: sum(nil), second: fetch.Member{Name: "package/data/b"}, wantErr: []string{"wrong checksum", sum(tgz)}},
		{name: "wrong member checksum", sum: sum(tgz), second: fetch.Member{Name: "package/data/b", SHA256: sum(nil)}, wantErr: []string{"extract package/data/b", "wrong checksum"}},
		{name: "no such member", sum: sum(tgz), second: fetch.Member{Name: "package/data/c"}, wantErr: []string{`no member "package/data/c"`}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "tgz"), tgz)
			t.Setenv("TGZ", filepath.Join(dir, "tgz"))
			t.Setenv("CALLS", filepath.Join(dir, "calls"))
			stub(t, "npm", npmScript)
			a, b := filepath.Join(dir, "out", "a"), filepath.Join(dir, "out", "b")
			tc.second.Dest = b
			p := fetch.NpmPackage{Spec: "name@1.0.0", SHA256: tc.sum, Members: []fetch.Member{{Name: "package/data/a", Dest: a}, tc.second}}
			for range 2 {
				checkError(t, fetch.NpmPack(context.Background(), p, fetch.Options{}), tc.wantErr, nil)
			}
			if tc.wantErr == nil {
				checkFile(t, a, []byte("content of ./package/data/a"))
				checkFile(t, b, text("package/data/b"))
				if calls, _ := os.ReadFile(filepath.Join(dir, "calls")); bytes.Count(calls, []byte("\n")) != 1 {
					t.Errorf("npm ran more than once:\n%s", calls)
				}
			} else if exists(b) {
				t.Error("the second file is there in spite of the error")
			}
			checkNoLeftovers(t, filepath.Join(dir, "out"))
		})
	}
}

func TestExtractRefusesWhatIsNoArchive(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	write(t, file, content)
	checkError(t, fetch.ExtractZip(file, "m", filepath.Join(dir, "out")), []string{file, "not a valid zip"}, nil)
	checkError(t, fetch.ExtractTarGz(file, []fetch.Member{{Name: "m"}}), []string{file, "not gzip"}, nil)
	whole := tgzOf(t, "a", "b")
	write(t, file, whole[:len(whole)-20])
	checkError(t, fetch.ExtractTarGz(file, []fetch.Member{{Name: "c", Dest: filepath.Join(dir, "c")}}), []string{"unexpected EOF"}, nil)
}

// checkNoLeftovers fails if dir has hidden files other than locks.
func checkNoLeftovers(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !strings.HasSuffix(e.Name(), ".lock") {
			t.Errorf("left behind: %s", e.Name())
		}
	}
}

func TestPipInstall(t *testing.T) {
	const script = `
[ "$1 $2 $3 $4" = "-m pip install --target" ] || { echo "unexpected: $*"; exit 9; }
dir=$5; case "$*" in *--require-hashes*--no-deps*) ;; *) echo "unsafe: $*"; exit 9;; esac
while [ $# -gt 0 ]; do [ "$1" = --requirement ] && cp "$2" "$dir/seen"; shift; done
`
	tests := []struct {
		name, script string
		wantErr      []string
	}{
		{name: "plain", script: script},
		{name: "wrong hash", script: "echo 'ERROR: THESE PACKAGES DO NOT MATCH THE HASHES' >&2; exit 1",
			wantErr: []string{"cannot get the libraries", "pip install --target", "DO NOT MATCH THE HASHES"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			stub(t, "python3", tc.script)
			dir := filepath.Join(t.TempDir(), "new", "dir")
			err := fetch.PipInstall(context.Background(), "the libraries", "name==1.0 --hash=sha256:00\n", dir, fetch.Options{})
			checkError(t, err, tc.wantErr, nil)
			if tc.wantErr == nil {
				checkFile(t, filepath.Join(dir, "seen"), []byte("name==1.0 --hash=sha256:00\n"))
			}
			checkNoLeftovers(t, filepath.Dir(dir))
		})
	}
}
