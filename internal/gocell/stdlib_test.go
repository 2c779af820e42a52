package gocell

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestStdlibList fails when Go's standard library has got packages that stdlib.txt lacks.
func TestStdlibList(t *testing.T) {
	out, err := exec.Command("go", "list", "std").Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, path := range strings.Fields(string(out)) {
		if parts := "/" + path + "/"; !strings.Contains(parts, "/internal/") && !strings.Contains(parts, "/vendor/") {
			want = append(want, path)
		}
	}
	if diff := cmp.Diff(want, strings.Fields(stdlibList)); diff != "" {
		t.Errorf("stdlib.txt is stale: run go generate (-go +stdlib.txt):\n%s", diff)
	}
}

// TestStdlibNames fails when two packages of the standard library have a name that nothing decides
// between.
func TestStdlibNames(t *testing.T) {
	for name, paths := range stdlib() {
		if len(paths) > 1 && usual[name] == "" {
			t.Errorf("%s is the name of %q: say in usual which is meant", name, paths)
		}
	}
}
