package compressed_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"gonbatch/data/compressed"
	"gonbatch/data/compressed/compressedtest"
)

// packed returns a text, compressed by each kind.
func packed(t *testing.T, text string) map[compressed.Kind]string {
	t.Helper()
	return map[compressed.Kind]string{"": text, compressed.Gzip: compressedtest.Gzip(t, text), compressed.Zstd: compressedtest.Zstd(t, text)}
}

// TestReader: the content is the same whatever compressed it, and a file that is cut is an error.
func TestReader(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("hello, ", 100_000)} {
		for kind, file := range packed(t, text) {
			if got, err := compressed.KindOf(strings.NewReader(file)); got != kind || err != nil {
				t.Errorf("got %q, %v, want %q", got, err, kind)
			}
			if got, err := readAll(file); got != text || err != nil {
				t.Errorf("%s: %d bytes, want %d: %v", kind, len(got), len(text), err)
			}
			for _, cut := range []int{5, len(file) / 2, len(file) - 1} {
				if kind == "" || cut >= len(file) {
					continue
				}
				if _, err := readAll(file[:cut]); !errors.Is(err, compressed.ErrTruncated) {
					t.Errorf("%s, %d of %d bytes: %v", kind, cut, len(file), err)
				}
			}
		}
	}
}

// TestMembers: a gzip file may have several members, but nothing else.
func TestMembers(t *testing.T) {
	a, b := compressedtest.Gzip(t, "hello, "), compressedtest.Gzip(t, strings.Repeat("world", 100_000))
	if got, err := readAll(a + b); len(got) != 7+500_000 || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, wrong := range []string{a + "\x00" + b, a + strings.Repeat("\x00", 512), a + "x", a + b[:4]} {
		if got, err := readAll(wrong); err == nil {
			t.Errorf("%d bytes, and no error", len(got))
		}
	}
}

// readAll returns the content of a file.
func readAll(file string) (string, error) {
	r, err := compressed.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		return "", err
	}
	content, err := io.ReadAll(r)
	if err != nil {
		err = compressed.Explain(err)
	}
	return string(content), errors.Join(err, r.Close())
}

// TestSeek: what is not compressed can be skipped.
func TestSeek(t *testing.T) {
	for kind, file := range packed(t, "hello") {
		r, err := compressed.NewReader(strings.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.(io.Seeker); ok != (kind == "") {
			t.Errorf("%q: seeks: %v", kind, ok)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
