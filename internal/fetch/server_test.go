package fetch_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/internal/fetch"
)

// content is the test servers' file: long enough for several reads.
var content = bytes.Repeat([]byte("0123456789abcdef"), 20_000)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// server counts requests.
type server struct {
	*httptest.Server
	count atomic.Int32
}

func (s *server) requests() int { return int(s.count.Load()) }

// serve starts a server whose handler knows how many requests came before.
func serve(t *testing.T, handle func(n int, w http.ResponseWriter, r *http.Request)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(int(s.count.Add(1))-1, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// whole serves b as an ordinary file server does.
func whole(b []byte, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", `"`+sum(b)[:8]+`"`)
	http.ServeContent(w, r, "f", time.Time{}, bytes.NewReader(b))
}

// cut announces all of b but sends only n bytes.
func cut(b []byte, n int, w http.ResponseWriter) {
	w.Header().Set("Content-Length", fmt.Sprint(len(b)))
	w.Header().Set("ETag", `"`+sum(b)[:8]+`"`)
	_, _ = w.Write(b[:n])
}

func quick() fetch.Options {
	return fetch.Options{Attempts: 3, Backoff: time.Millisecond, ConnectTimeout: 200 * time.Millisecond, StallTimeout: 200 * time.Millisecond}
}

func checkError(t *testing.T, err error, parts []string, is error) {
	t.Helper()
	if parts == nil {
		if err != nil {
			t.Errorf("error: %v", err)
		}
		return
	}
	if err == nil {
		t.Errorf("no error, want one with %q", parts)
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error lacks %q:\n%v", p, err)
		}
	}
	if is != nil && !errors.Is(err, is) {
		t.Errorf("error is not %q:\n%v", is, err)
	}
}

func checkFile(t *testing.T, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%s has other content (%d bytes, want %d)", path, len(got), len(want))
	}
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// closedPort returns an address on which nobody listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/f"
}
