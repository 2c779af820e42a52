package arch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"gonbatch/internal/bounded"
	"gonbatch/internal/tier"
)

// pinned are the modules whose internals distributed/pjrt uses: a new version may break it.
var pinned = []string{"github.com/gomlx/gomlx", "github.com/gomlx/go-xla", "github.com/gomlx/compute"}

// TestPins checks that the rewriting of programs also works with newer versions of GoMLX and of
// XLA's binding, if the module cache has any. The test is then skipped, with the command that
// updates the pins.
func TestPins(t *testing.T) {
	tier.Long(t)
	root := sourceRoot(t)
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var newer []string
	for _, r := range mod.Require {
		for _, path := range pinned {
			if version := newestRelease(t, root, path); r.Mod.Path == path && semver.Compare(version, r.Mod.Version) > 0 {
				newer = append(newer, path+"@"+version)
			}
		}
	}
	if len(newer) == 0 {
		return
	}
	file := filepath.Join(t.TempDir(), "go.mod")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err == nil {
		err = os.WriteFile(strings.TrimSuffix(file, "mod")+"sum", sum, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	get := append([]string{"get"}, newer...)
	goCommand(t, root, append([]string{"get", "-modfile=" + file}, newer...)...)
	goCommand(t, root, "vet", "-mod=mod", "-modfile="+file, "./distributed/...", "./trainer")
	goCommand(t, root, "test", "-timeout=60m", "-mod=mod", "-modfile="+file, "./distributed/pjrt")
	t.Skipf("newer versions are in the module cache, and distributed/pjrt works with them: go %s", strings.Join(get, " "))
}

// newestRelease returns the newest release of a module in the module cache; "" if there is none.
func newestRelease(t *testing.T, root, path string) (newest string) {
	cache := strings.TrimSpace(goCommand(t, root, "env", "GOMODCACHE"))
	zips, err := filepath.Glob(filepath.Join(cache, "cache", "download", path, "@v", "*.zip"))
	if err != nil {
		t.Fatal(err)
	}
	for _, zip := range zips {
		version := strings.TrimSuffix(filepath.Base(zip), ".zip")
		if semver.Prerelease(version) == "" && semver.Compare(version, newest) > 0 {
			newest = version
		}
	}
	return newest
}

// goCommand runs the go command in this repository.
func goCommand(t *testing.T, root string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := bounded.CombinedOutput(cmd)
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
