package fetch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// PipInstall unpacks wheels into the folder dir, like `python3 -m pip install --target`, without
// their dependencies. requirements is the content of a requirements file in which each line pins a
// version and a SHA-256:
//
//	name==1.2.3 --hash=sha256:0123...
//
// Existing files in dir are overwritten. Unlike [PipWheel] it is not atomic and takes no lock: the
// caller must hold one.
func PipInstall(ctx context.Context, name, requirements, dir string, opts Options) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	tmp, err := scratch(dir)
	if err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	defer os.RemoveAll(tmp) //nolint:errcheck // a temporary folder
	file := filepath.Join(tmp, "requirements.txt")
	if err := os.WriteFile(file, []byte(requirements), 0o644); err != nil {
		return fmt.Errorf("fetch %s: %w", name, err)
	}
	m := newMeter(opts.Progress, name+" (pip)", 0)
	defer m.stop()
	args := append([]string{"python3", "-m", "pip", "install", "--target", dir, "--requirement", file,
		"--require-hashes", "--no-deps", "--only-binary=:all:", "--no-compile", "--upgrade", "--no-cache-dir", "--root-user-action=ignore"}, pipOptions...)
	if err := m.command(ctx, tmp, []string{"TMPDIR=" + tmp}, args...); err != nil {
		return &Error{Name: name, Path: dir, Tries: []Try{{Way: "python3 -m pip install --target " + dir, Err: err}}, Fix: pipCheck}
	}
	m.at(usage(dir))
	m.done()
	return nil
}
