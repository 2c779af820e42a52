// Package compressedtest compresses content for tests.
package compressedtest

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Gzip compresses content in several members, as pigz and bgzip may.
func Gzip(t *testing.T, members ...string) string {
	t.Helper()
	var buffer bytes.Buffer
	for _, member := range members {
		w := gzip.NewWriter(&buffer)
		if _, err := io.WriteString(w, member); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return buffer.String()
}

// Zstd compresses content, also if it is empty.
func Zstd(t *testing.T, content string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithZeroFrames(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(w.EncodeAll([]byte(content), nil))
}
