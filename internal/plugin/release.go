package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"gonbatch/internal/fetch"
)

// The release of the CPU plugin that go-xla v0.4.5 itself installs (its DefaultCPUVersion).
const (
	releaseVersion = "0.114.0"
	releasePage    = "https://github.com/gomlx/pjrt-cpu-binaries/releases/download/v" + releaseVersion
	releaseIndex   = "https://api.github.com/repos/gomlx/pjrt-cpu-binaries/releases/tags/v" + releaseVersion
)

// asset is the archive of the release for this machine.
var asset = "pjrt_cpu_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"

// release gets the CPU plugin from go-xla's own release.
var release = way{
	version: releaseVersion,
	what:    releasePage + "/" + asset,
	get: func(ctx context.Context, path string, opts Options) error {
		return fromRelease(ctx, releasePage, releaseIndex, path, opts)
	},
}

func fromRelease(ctx context.Context, page, index, path string, opts Options) error {
	options := fetch.Options{Progress: opts.Progress}
	src := fetch.Source{Name: asset, URLs: []string{page + "/" + asset}}
	if err := pin(ctx, index, filepath.Dir(path), &src); err != nil && opts.Progress != nil {
		fmt.Fprintf(opts.Progress, "plugin: the release page's checksum isn't available; continuing without it: %v\n", err)
	}
	archive := filepath.Join(filepath.Dir(path), asset)
	if err := os.Remove(archive); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := fetch.File(ctx, src, archive, options); err != nil {
		return err
	}
	defer os.Remove(archive) //nolint:errcheck // unpacked; the next fetch overwrites it
	return fetch.ExtractTarGz(archive, []fetch.Member{{Name: "pjrt_c_api_cpu_*_plugin.so", Dest: path}})
}

// pin completes src with the size and SHA-256 that the release's index publishes.
func pin(ctx context.Context, index, dir string, src *fetch.Source) error {
	file := filepath.Join(dir, "release.json")
	defer os.Remove(file) //nolint:errcheck // read; the next fetch overwrites it
	if err := fetch.File(ctx, fetch.Source{URLs: []string{index}}, file, fetch.Options{Attempts: 2}); err != nil {
		return fetch.Tries(index, err)[0].Err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var release struct {
		Assets []struct {
			Name, Digest string
			Size         int64
		}
	}
	if err := json.Unmarshal(data, &release); err != nil {
		return fmt.Errorf("%s: %w", index, err)
	}
	for _, a := range release.Assets {
		if sum, ok := strings.CutPrefix(a.Digest, "sha256:"); ok && a.Name == src.Name {
			src.SHA256, src.Size = sum, a.Size
			return nil
		}
	}
	return fmt.Errorf("%s publishes no SHA-256 of %s", index, src.Name)
}
