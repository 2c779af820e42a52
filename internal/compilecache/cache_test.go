package compilecache_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gonbatch/internal/compilecache"
	"gonbatch/internal/rundir"
	"gonbatch/tests/tmpfs"
)

// TestDo: a program is compiled once, by any process.
func TestDo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	for i := range 3 {
		c := open(t, dir, compilecache.Limit)
		wantCompiled(t, c, 1, i == 0)
		wantCompiled(t, c, 2, i == 0)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
}

// TestFailures: a program that can't be compiled, serialized or loaded is treated as if there were
// no cache.
func TestFailures(t *testing.T) {
	c := open(t, t.TempDir(), compilecache.Limit)
	wrong := errors.New("no such operation")
	compile := func(program []byte, err error) func() ([]byte, error) {
		return func() ([]byte, error) { return program, err }
	}
	load := func([]byte) error { t.Error("there is nothing to load"); return nil }
	for range 2 {
		if err := c.Do(keyOf(0), "", load, compile(nil, wrong)); !errors.Is(err, wrong) {
			t.Errorf("a failed compilation: %v", err)
		}
		if err := c.Do(keyOf(1), "", load, compile(nil, nil)); err != nil {
			t.Errorf("a program that can't be serialized: %v", err)
		}
	}
	wantCompiled(t, c, 2, true)
	compiled := false
	err := c.Do(keyOf(2), "", func([]byte) error { return wrong }, func() ([]byte, error) { compiled = true; return programOf(2), nil })
	if err != nil || !compiled {
		t.Errorf("an entry that can't be loaded: compiled %v, %v", compiled, err)
	}
	wantCompiled(t, c, 2, false)
}

// TestPassedOver: an entry that is damaged, or that somebody else has written, is not loaded. The
// program is compiled again and stored.
func TestPassedOver(t *testing.T) {
	rewrite := func(change func([]byte) []byte) func(t *testing.T, path, other string) {
		return func(t *testing.T, path, _ string) {
			entry, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, change(entry), 0o600)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
	do := func(f func(path, other string) error) func(t *testing.T, path, other string) {
		return func(t *testing.T, path, other string) {
			if err := f(path, other); err != nil {
				t.Error(err)
			}
		}
	}
	tests := []struct {
		name   string
		damage func(t *testing.T, path, other string)
	}{
		{"empty", rewrite(func([]byte) []byte { return nil })},
		{"header only", rewrite(func(b []byte) []byte { return b[:160] })},
		{"truncated", rewrite(func(b []byte) []byte { return b[:len(b)-1] })},
		{"longer", rewrite(func(b []byte) []byte { return append(b, 0) })},
		{"a bit of the program", rewrite(func(b []byte) []byte { b[len(b)-10] ^= 4; return b })},
		{"a bit of the checksum", rewrite(func(b []byte) []byte { b[100] ^= 1; return b })},
		{"a page of zeros", rewrite(func(b []byte) []byte { clear(b[500:900]); return b })},
		{"another format", rewrite(func(b []byte) []byte { return []byte(strings.Replace(string(b), "program 1", "program 2", 1)) })},
		{"text", rewrite(func([]byte) []byte { return []byte("#!/bin/sh\n\n\n\n\n") })},
		{"another program's entry", do(func(path, other string) error { return os.Rename(other, path) })},
		{"writable by others", do(func(path, _ string) error { return os.Chmod(path, 0o622) })},
		{"a link", do(func(path, other string) error {
			return errors.Join(os.Rename(path, path+".aside"), os.Symlink(path+".aside", path))
		})},
		{"a pipe", do(func(path, other string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) })},
		{"removed", do(func(path, _ string) error { return os.Remove(path) })},
	}
	if os.Geteuid() == 0 {
		tests = append(tests, struct {
			name   string
			damage func(t *testing.T, path, other string)
		}{"another owner", do(func(path, _ string) error { return os.Chown(path, 1, 1) })})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			c := open(t, dir, compilecache.Limit)
			wantCompiled(t, c, 1, true)
			wantCompiled(t, c, 2, true)
			test.damage(t, filepath.Join(dir, keyOf(1).String()+".program"), filepath.Join(dir, keyOf(2).String()+".program"))
			wantCompiled(t, c, 1, true)
			wantCompiled(t, c, 1, false)
		})
	}
}

// TestFolder: a folder that can't be a cache, or that others could write to, is refused with a
// reason.
func TestFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o770); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, dir, want string }{
		{"writable by a group", shared, "chmod 700"},
		{"a file", file, "not a directory"},
		{"below a file", filepath.Join(file, "cache"), "not a directory"},
	}
	if os.Geteuid() == 0 {
		foreign := t.TempDir()
		if err := os.Chown(foreign, 1, 1); err != nil {
			t.Fatal(err)
		}
		tests = append(tests, struct{ name, dir, want string }{"another owner", foreign, "restrict it"})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := compilecache.Open(test.dir, compilecache.Limit, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.dir) || !strings.Contains(err.Error(), rundir.EnvCompileCache) {
				t.Errorf("%v, want the folder, %q and the variable", err, test.want)
			}
		})
	}
}

// TestDisk: if the disk is full or read-only, programs that can't be stored are compiled each time,
// with one warning. Existing entries are loaded.
func TestDisk(t *testing.T) {
	tests := []struct {
		name   string
		change uintptr
		want   error
	}{{"full", 0, syscall.ENOSPC}, {"read only", syscall.MS_REMOUNT | syscall.MS_RDONLY, syscall.EROFS}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			disk := t.TempDir()
			tmpfs.Mount(t, disk, "size=64k")
			dir := filepath.Join(disk, "cache")
			var warnings []error
			c, err := compilecache.Open(dir, compilecache.Limit, func(err error) { warnings = append(warnings, err) })
			if err != nil {
				t.Fatal(err)
			}
			wantCompiled(t, c, 1, true)
			if test.change != 0 {
				if err := syscall.Mount("tmpfs", disk, "tmpfs", test.change, ""); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				wantCompiled(t, c, 200, true)
				wantCompiled(t, c, 1, false)
			}
			if len(warnings) != 1 || !errors.Is(warnings[0], test.want) {
				t.Errorf("warnings: %v", warnings)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".new-*")); len(left) > 0 || err != nil {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestFolderIsGone: if the folder vanishes, there is only a warning.
func TestFolderIsGone(t *testing.T) {
	dir := t.TempDir()
	var warnings []error
	c, err := compilecache.Open(dir, compilecache.Limit, func(err error) { warnings = append(warnings, err) })
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	wantCompiled(t, c, 1, true)
	wantCompiled(t, c, 1, true)
	if len(warnings) != 1 || !strings.Contains(fmt.Sprint(warnings), dir) {
		t.Errorf("warnings: %v", warnings)
	}
}

// TestPlace: one variable moves the cache and turns it off.
func TestPlace(t *testing.T) {
	tests := []struct{ name, value, want, err string }{
		{name: "unset", want: "/home/ada/.cache/gonbatch/compile-cache"},
		{name: "moved", value: "/scratch/ada/", want: "/scratch/ada"},
		{name: "off", value: "off"},
		{name: "relative", value: "cache", err: `GONBATCH_COMPILE_CACHE="cache": give the absolute path`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			env := map[string]string{"HOME": "/home/ada", rundir.EnvCompileCache: test.value}
			got, err := compilecache.Place(func(name string) string { return env[name] })
			if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("%q, %v; want %q, %q", got, err, test.want, test.err)
			}
		})
	}
}
