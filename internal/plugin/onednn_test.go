package plugin

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonbatch/internal/machine"
	"gonbatch/internal/rundir"
)

const oneDNNSource = "int dnnl_memory_desc_create_with_strides(void) { return 0; }"

// replaceOneDNN makes EnsureOneDNN get the library in another way. It returns how often it did.
func replaceOneDNN(t *testing.T, get func(path string) error) *atomic.Int32 {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		machine.Lacks(t, "oneDNN is not built for "+runtime.GOOS+"/"+runtime.GOARCH)
	}
	before := oneDNN
	t.Cleanup(func() { oneDNN = before })
	calls := new(atomic.Int32)
	oneDNN = way{version: "onednn-1", what: "a way", get: func(_ context.Context, path string, _ Options) error {
		calls.Add(1)
		time.Sleep(20 * time.Millisecond)
		return get(path)
	}}
	return calls
}

// TestEnsureOneDNN: of several processes, one installs; what is there serves.
func TestEnsureOneDNN(t *testing.T) {
	library := compile(t, oneDNNSource)
	calls := replaceOneDNN(t, func(path string) error { return os.WriteFile(path, library, 0o644) })
	opts := options(t)
	if path := FindOneDNN(opts); path != "" {
		t.Errorf("found %s before it was installed", path)
	}
	want := filepath.Join(opts.Getenv("HOME"), ".cache/gonbatch/plugins/cpu-onednn-1", OneDNNName)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if path, err := EnsureOneDNN(t.Context(), opts); err != nil || path != want {
				t.Errorf("%s, %v, want %s", path, err, want)
			}
		})
	}
	all.Wait()
	if info, err := os.Stat(want); err != nil || info.Mode() != 0o444 || calls.Load() != 1 {
		t.Errorf("installed %d times, as %v, %v", calls.Load(), info, err)
	}
	opts.Platform = CUDA // It is the CPU's, whatever the plugin.
	if path := FindOneDNN(opts); path != want {
		t.Errorf("found %q, want %s", path, want)
	}
}

// TestEnsureOneDNNFails: a failure is reported once, and tried again a day later. A library that
// programs can't use is none.
func TestEnsureOneDNNFails(t *testing.T) {
	for name, get := range map[string]func(path string) error{
		"no network": func(string) error { return errors.New("no network") },
		"version 2": func(path string) error {
			return os.WriteFile(path, compile(t, "int dnnl_version(void) { return 2; }"), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls := replaceOneDNN(t, get)
			opts := options(t)
			_, err := EnsureOneDNN(t.Context(), opts)
			expect(t, err, "oneDNN could not be installed: a way: ", "onednn-1.failed has all of it", "again in a day")
			if path, err := EnsureOneDNN(t.Context(), opts); path != "" || err != nil || calls.Load() != 1 {
				t.Errorf("again: %q, %v, tried %d times", path, err, calls.Load())
			}
			failed := filepath.Join(opts.Getenv("HOME"), ".cache/gonbatch/plugins/onednn-1.failed")
			yesterday := time.Now().Add(-retryOneDNN)
			if err := os.Chtimes(failed, yesterday, yesterday); err != nil {
				t.Fatal(err)
			}
			if _, err := EnsureOneDNN(t.Context(), opts); err == nil || calls.Load() != 2 {
				t.Errorf("a day later: %v, tried %d times", err, calls.Load())
			}
		})
	}
}

// TestEnsureOneDNNInterrupted: a download that the user ends is no failure.
func TestEnsureOneDNNInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	calls := replaceOneDNN(t, func(string) error { cancel(); return context.Canceled })
	opts := options(t)
	if _, err := EnsureOneDNN(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := EnsureOneDNN(t.Context(), opts); err == nil || calls.Load() != 2 {
		t.Errorf("%v, tried %d times", err, calls.Load())
	}
}

// TestEnsureOneDNNElsewhere: nothing is installed beside plugins that the user has chosen.
func TestEnsureOneDNNElsewhere(t *testing.T) {
	calls := replaceOneDNN(t, func(string) error { return errors.New("asked") })
	opts := options(t)
	home := opts.Getenv
	opts.Getenv = func(name string) string {
		if name == rundir.EnvPluginDir {
			return "/plugins"
		}
		return home(name)
	}
	if path, err := EnsureOneDNN(t.Context(), opts); path != "" || err != nil || calls.Load() != 0 {
		t.Errorf("%q, %v, tried %d times", path, err, calls.Load())
	}
}

// TestEnsureOneDNNDamaged: a library that a full disk has cut off is none, and is installed again.
func TestEnsureOneDNNDamaged(t *testing.T) {
	library := compile(t, oneDNNSource)
	calls := replaceOneDNN(t, func(path string) error { return os.WriteFile(path, library, 0o644) })
	opts := options(t)
	path, err := EnsureOneDNN(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, len(library) / 2} {
		if err := errors.Join(os.Remove(path), os.WriteFile(path, library[:size], 0o444)); err != nil {
			t.Fatal(err)
		}
		if found := FindOneDNN(opts); found != "" {
			t.Errorf("%d of %d bytes: found %s", size, len(library), found)
		}
		if again, err := EnsureOneDNN(t.Context(), opts); err != nil || again != path || FindOneDNN(opts) != path {
			t.Errorf("%d of %d bytes: %q, %v", size, len(library), again, err)
		}
	}
	if n := calls.Load(); n != 3 {
		t.Errorf("installed %d times, want 3", n)
	}
}
