package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gomlx/go-xla/installer"
)

// reach is how long the package index may take to answer; go-xla's installer itself would wait for minutes.
const reach = 4 * time.Second

// getNvidia runs go-xla's installer, which checks the SHA-256 that the package index publishes. It writes a line to
// standard output, and cannot be ended early: if ctx ends, it goes on in the background until the process ends.
func getNvidia(ctx context.Context, path string, opts Options) error {
	lookup := func() error { _, err := installer.GetPipInfo(cudaPackage); return err }
	if err := limited(ctx, reach, lookup); err != nil {
		return fmt.Errorf("the package index is out of reach (%w); install the wheels %s==%s and jax-%s-plugin[with-cuda] "+
			"in a machine's Python that has network", err, cudaPackage, cudaVersion, cudaPlugin)
	}
	if opts.Progress != nil {
		fmt.Fprintf(opts.Progress, "plugin: installing %s %s and NVIDIA's libraries (about 3 GB)\n", cudaPackage, cudaVersion)
	}
	nvidiaDir := filepath.Dir(path)
	run := func() error {
		return installer.CudaInstall(cudaPlugin, cudaVersion, filepath.Dir(nvidiaDir), false, installer.Quiet)
	}
	if err := limited(ctx, 0, run); err != nil {
		return err
	}
	return os.Rename(filepath.Join(nvidiaDir, installer.NVIDIAPJRTPluginFileName), path)
}

// limited runs f, which knows no context, until it ends, ctx ends, or the limit (0: none) is over.
func limited(ctx context.Context, limit time.Duration, f func() error) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
		defer cancel()
	}
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
