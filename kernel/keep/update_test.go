package keep

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestUpdate writes random versions of a file in random pieces, and checks the file after each. An
// unchanged version leaves the file alone.
func TestUpdate(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	file := filepath.Join(t.TempDir(), "x")
	var last []byte
	for i := range 500 {
		text := bytes.Clone(last)
		switch random.IntN(5) {
		case 0: // the same
		case 1:
			text = append(text, make([]byte, random.IntN(50))...)
		case 2:
			text = text[:random.IntN(len(text)+1)]
		case 3:
			if len(text) > 0 {
				text[random.IntN(len(text))]++
			}
		default:
			text = bytes.Repeat([]byte{byte(i)}, random.IntN(100))
		}
		before, _ := os.Stat(file)
		old := file
		if random.IntN(5) == 0 { // from another folder, as in a job
			old = filepath.Join(t.TempDir(), "x")
			if err := os.WriteFile(old, last, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		u, err := newUpdate(file, old)
		if err != nil {
			t.Fatal(err)
		}
		if random.IntN(2) == 0 && u.buffer != nil {
			u.buffer = u.buffer[:1+random.IntN(20)]
		}
		for rest := text; len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			if _, err := u.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		discard := random.IntN(10) == 0
		if discard {
			err = u.Discard()
		} else {
			err = u.Commit()
		}
		if err != nil {
			t.Fatal(err)
		}
		after, _ := os.Stat(file)
		if same := bytes.Equal(text, last); before != nil && old == file && (same || discard) && !os.SameFile(before, after) {
			t.Fatalf("version %d: the file was replaced by the same", i)
		}
		if !discard {
			last = text
		}
		if got, _ := os.ReadFile(file); !bytes.Equal(got, last) {
			t.Fatalf("version %d: the file is %q, want %q", i, got, last)
		}
		if _, err := os.Stat(file + ".new"); err == nil {
			t.Fatalf("version %d: the draft is left", i)
		}
	}
}

// TestOldFileReplaced: an update that changes nothing yields the old file that it has read, even if
// another process has replaced that file since.
func TestOldFileReplaced(t *testing.T) {
	for _, carried := range []bool{false, true} {
		dir := t.TempDir()
		old, own := filepath.Join(dir, "old"), filepath.Join(dir, "own")
		for name, text := range map[string]string{old: "before", old + ".new": "after"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		u, err := newUpdate(own, old)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := u.Write([]byte("before")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(old+".new", old); err != nil {
			t.Fatal(err)
		}
		if carried {
			err = u.Carry()
		} else {
			err = u.Commit()
		}
		if text, readErr := os.ReadFile(own); err != nil || readErr != nil || string(text) != "before" {
			t.Errorf("carried %v: %q, %v, %v", carried, text, err, readErr)
		}
	}
}
