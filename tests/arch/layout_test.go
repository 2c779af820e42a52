package arch

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
)

// folders are those at the top of the tree: the product's parts, what a notebook may import, and
// what developers need. Everything else belongs in internal.
var folders = []string{
	"kernel", "notebooks", "distributed", "submit", "slurmtmpl", "tests",
	"checkpoint", "data", "logger", "models", "trainer",
	"bench", "cmd", "docs", "internal", "scripts",
}

// TestLayout: nothing else has got into the repository's top folder.
func TestLayout(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = filepath.Join("..", "..")
	out, err := bounded.Output(cmd)
	if err != nil {
		machine.Lacks(t, "this is not a git checkout")
	}
	seen := map[string]bool{}
	for file := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		folder, _, nested := strings.Cut(file, "/")
		if nested && !seen[folder] && !strings.HasPrefix(folder, ".") && !slices.Contains(folders, folder) {
			t.Errorf("the folder %s, with %s, does not belong in the top folder", folder, file)
		}
		seen[folder] = true
	}
}
