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
	"gonbatch/internal/solo"
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

// TestLockIsSoloWork: ranks that wait for this process learn that it holds the lock, or waits for
// the process that does.
func TestLockIsSoloWork(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mnist")
	unlock, err := fetch.Lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if work, _ := solo.Now(); work.What != "gets mnist" {
		t.Errorf("with the lock, the work is %q", work.What)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := fetch.Lock(ended, path, nil); err == nil {
		t.Error("two have the lock")
	}
	unlock()
	if work, _ := solo.Now(); work.What != "" {
		t.Errorf("without the lock, the work is %q", work.What)
	}
}
