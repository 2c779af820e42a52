package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"gonbatch/internal/fetch"
	"gonbatch/internal/rundir"
	"gonbatch/internal/sharedlib"
)

// OneDNNName is the name of oneDNN's library, version 3.
const OneDNNName = "libdnnl.so.3"

// OneDNN is a function that only version 3 has.
var OneDNN = sharedlib.Has("dnnl_memory_desc_create_with_strides", "oneDNN 3")

// The wheel by oneDNN's authors (oneDNN 3.2.0, built with GCC's OpenMP, for x86-64 alone).
var oneDNNWheel = fetch.Wheel{
	Requirement: "onednn-cpu-gomp==2023.2.0",
	SHA256:      "2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb",
	Size:        38888991,
	Member:      "onednn_cpu_gomp-2023.2.0.data/data/lib/libdnnl.so.3",
}

// oneDNN gets oneDNN through the site's pip; it is a variable so that tests can work without a
// network.
var oneDNN = byPip("onednn-2023.2.0", oneDNNWheel)

// retryOneDNN is how long EnsureOneDNN doesn't try again after it failed.
const retryOneDNN = 24 * time.Hour

// FindOneDNN returns the path of the oneDNN that gonbatch has installed; "" if there is none, or if
// the file is damaged.
func FindOneDNN(opts Options) string {
	opts.Platform = CPU
	opts, err := opts.withDefaults()
	if err != nil {
		return ""
	}
	if path := oneDNNPath(opts); fetch.Have(path, 0) && sharedlib.Check(path, OneDNN) == nil {
		return path
	}
	return ""
}

// EnsureOneDNN returns the path of the oneDNN that gonbatch has installed, and installs it first if
// it is missing (39 MB of downloads, 55 MB installed). It returns "" where it installs nothing: on
// another system than linux/amd64, if GONBATCH_PLUGIN_DIR says that the user has chosen the
// libraries, or for a day after a try that failed. It blocks and may be called at once, as Ensure.
func EnsureOneDNN(ctx context.Context, opts Options) (path string, err error) {
	if path := FindOneDNN(opts); path != "" {
		return path, nil
	}
	opts.Platform = CPU
	if opts, err = opts.withDefaults(); err != nil {
		return "", err
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" || opts.Getenv(rundir.EnvPluginDir) != "" {
		return "", nil
	}
	unlock, err := fetch.Lock(ctx, filepath.Join(opts.Dir, oneDNN.version), opts.Progress)
	if err != nil {
		return "", fmt.Errorf("oneDNN: %w", err)
	}
	defer unlock()
	if path := FindOneDNN(opts); path != "" { // Another process was faster.
		return path, nil
	}
	failed := filepath.Join(opts.Dir, oneDNN.version+".failed")
	if info, err := os.Stat(failed); err == nil && time.Since(info.ModTime()) < retryOneDNN {
		return "", nil
	}
	if err := oneDNN.installAs(ctx, opts, OneDNNName, OneDNN); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("oneDNN: %w", ctx.Err())
		}
		_ = os.WriteFile(failed, []byte(err.Error()+"\n"), 0o644) // Without it, the next call tries again.
		return "", fmt.Errorf("oneDNN could not be installed: %s: %s; %s has all of it; it is tried again in a day", oneDNN.what, lastLine(err), failed)
	}
	return oneDNNPath(opts), nil
}

// lastLine returns the last line of what the last way to get a library has said.
func lastLine(err error) string {
	tries := fetch.Tries(oneDNN.what, err)
	lines := strings.Split(strings.TrimSpace(tries[len(tries)-1].Err.Error()), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

func oneDNNPath(opts Options) string { return filepath.Join(oneDNN.dir(opts), OneDNNName) }
