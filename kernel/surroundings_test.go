package kernel_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gonbatch/tests/tmpfs"
)

// TestGoEnvironment: settings for other modules, in the user's environment or from `go env -w`, do
// not keep cells from running.
func TestGoEnvironment(t *testing.T) {
	outer := t.TempDir() // a workspace around the temporary folder
	config := filepath.Join(t.TempDir(), "env")
	for name, text := range map[string]string{filepath.Join(outer, "go.work"): "go 1.26\n\nuse ./nowhere\n", config: "GO111MODULE=off\nGOWORK=/nowhere/go.work\nGOOS=plan9\nGOFLAGS=-mod=vendor\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string][]string{
		"workspace":        {"GOWORK=/nowhere/go.work"},
		"no modules":       {"GO111MODULE=off"},
		"another platform": {"GOOS=windows", "GOARCH=arm64"},
		"flags":            {"GOFLAGS=-mod=vendor -modfile=/nowhere/go.mod -trimpath"},
		"go env -w":        {"GOENV=" + config},
		"around TMPDIR":    {"TMPDIR=" + outer},
	}
	for name, env := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ends := runCells(t, []string{"func twice(n int) int { return 2 * n }\n%%\nfmt.Println(twice(21))", "%%\nvar l []int\nl[3] = 1", "twice(4)"}, env...)
			for i, want := range [][2]string{{"ok", "42\n"}, {"error", "Cell [2] Line 3"}, {"ok", "result text/plain: 8"}} {
				if ends[i][0] != want[0] || !strings.Contains(ends[i][3], want[1]) {
					t.Errorf("cell %d: %q, want %q", i+1, ends[i], want)
				}
			}
		})
	}
}

// TestForbiddenPrograms: if programs can't run in the temporary folder, the session is elsewhere,
// and leaves nothing there either.
func TestForbiddenPrograms(t *testing.T) {
	tmp, cache := filepath.Join(t.TempDir(), "noexec"), t.TempDir()
	tmpfs.Mount(t, tmp, "size=10m")
	if err := unix.Mount("", tmp, "", unix.MS_REMOUNT|unix.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	ends := runCells(t, []string{"!echo a; exit 3", "!echo b", "6 * 7"}, "TMPDIR="+tmp, "XDG_CACHE_HOME="+cache, "GOCACHE="+goCache(t))
	for i, want := range [][3]string{{"error", "CommandFailed", "a\n"}, {"ok", "", "b\n"}, {"ok", "", "result text/plain: 42"}} {
		if ends[i][0] != want[0] || ends[i][1] != want[1] || !strings.Contains(ends[i][3], want[2]) {
			t.Errorf("cell %d: %q, want %q", i+1, ends[i], want)
		}
	}
	for _, dir := range []string{tmp, filepath.Join(cache, "gonbatch", "sessions")} {
		if left, err := filepath.Glob(filepath.Join(dir, "gonbatch-*")); err != nil || len(left) > 0 {
			t.Errorf("left: %v, %v", left, err)
		}
	}
}

// goCache returns the folder of Go's build cache.
func goCache(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("GOCACHE"); dir != "" {
		return dir
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "go-build")
}

// TestFullSession: if the session's folder is full, a failure names the folder, and what to do.
func TestFullSession(t *testing.T) {
	tmp := filepath.Join(t.TempDir(), "small")
	tmpfs.Mount(t, tmp, "size=12m")
	ends := runCells(t, []string{
		"func one() int { return 1 }", "!dd if=/dev/zero of=$TMPDIR/fill bs=1M", "func two() int { return one() + 1 }",
		"!rm $TMPDIR/fill", "func two() int { return one() + 1 }", "two()",
	}, "TMPDIR="+tmp)
	for i, want := range []string{"ok", "error", "error", "ok", "ok", "ok"} {
		if ends[i][0] != want {
			t.Errorf("cell %d: %q, want %s", i+1, ends[i], want)
		}
		full := strings.Contains(ends[i][2], "the session's folder is full: "+tmp+"/gonbatch-kernel-") && strings.Contains(ends[i][2], "start Jupyter with TMPDIR")
		if want == "error" && !full {
			t.Errorf("cell %d says nothing about the folder: %q", i+1, ends[i][2])
		}
	}
}

// TestNoHome: without HOME, as under a service that starts Jupyter, the kernel finds the user's
// home.
func TestNoHome(t *testing.T) {
	for i, end := range runCells(t, []string{"6 * 7", "%%\nfmt.Println(os.Getenv(\"HOME\") != \"\")"}, "HOME=", "XDG_CACHE_HOME=", "GOCACHE=") {
		if want := []string{"result text/plain: 42", "true\n"}[i]; end[0] != "ok" || !strings.Contains(end[3], want) {
			t.Errorf("cell %d: %q, want %q", i+1, end, want)
		}
	}
}
