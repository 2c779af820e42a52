package fetch_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/fetch"
)

func TestLockEndsWithContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	unlock, err := fetch.Lock(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	var said bytes.Buffer
	if _, err := fetch.Lock(ctx, path, &said); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second lock: %v, want a deadline error", err)
	}
	if !strings.Contains(said.String(), "f: waiting for the process") {
		t.Errorf("progress %q", said.String())
	}
	unlock()
	unlock, err = fetch.Lock(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock()
}
