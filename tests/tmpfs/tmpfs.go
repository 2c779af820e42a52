// Package tmpfs gives tests their own small file systems, which they can fill or make read-only.
//
//	tmpfs.Mount(t, filepath.Join(run, "checkpoints"), "size=96k")
package tmpfs

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Mount mounts a file system at path until the test ends. It creates the folder if needed. options
// are those of tmpfs, such as "size=1m". It needs root: without it, the test is skipped. On a build
// machine (CI=true), the test fails if root can't mount.
func Mount(t *testing.T, path, options string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", path, "tmpfs", 0, options); err != nil {
		if os.Getenv("CI") == "true" && os.Geteuid() == 0 {
			t.Fatalf("CI=true, but no file system can be mounted: %v", err)
		}
		t.Skipf("no small file system can be mounted: %v: run as root", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}
