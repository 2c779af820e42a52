package page

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/machine"
)

// Block is a fenced block of shell commands, or the cell of a notebook.
type Block struct {
	// Line is the number of the line on which the block begins, from 1.
	Line int
	// Script has the commands, or the cell.
	Script string
}

var update = flag.Bool("update", false, "write the generated sections of pages")

// All returns the paths of the project's pages in the repository.
func All(t testing.TB) []string {
	t.Helper()
	names := []string{"README.md", "CONTRIBUTING.md"}
	root := Root(t)
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			names = append(names, strings.TrimPrefix(path, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Read returns the text of a page, given its path in the repository.
func Read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Commands returns the blocks of a page that are fenced by ```sh, in order.
func Commands(t testing.TB, name string) []Block { return blocks(t, name, "sh") }

// Cells returns the blocks of a page that are fenced by ```go, in order.
func Cells(t testing.TB, name string) []Block { return blocks(t, name, "go") }

func blocks(t testing.TB, name, language string) []Block {
	t.Helper()
	var all []Block
	lines := strings.Split(Read(t, name), "\n")
	for i := 0; i < len(lines); i++ {
		if lines[i] != "```"+language {
			continue
		}
		block := Block{Line: i + 1}
		for i++; lines[i] != "```"; i++ {
			block.Script += lines[i] + "\n"
		}
		all = append(all, block)
	}
	return all
}

// Section fails the test unless the generated section of a page is want. The section lies between
// the lines <!-- begin SECTION --> and <!-- end SECTION -->. With the flag -update, Section writes
// it instead.
func Section(t testing.TB, name, section, want string) {
	t.Helper()
	text := Read(t, name)
	begin, end := "<!-- begin "+section+" -->\n", "<!-- end "+section+" -->\n"
	before, rest, found := strings.Cut(text, begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no lines %q and %q", name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	want = strings.TrimSpace(want) + "\n"
	if got == want {
		return
	}
	if !*update {
		t.Fatalf("%s: section %s differs from the code; write it with go test -run %s -update", name, section, t.Name())
	}
	updated := before + begin + want + end + after
	if err := os.WriteFile(filepath.Join(Root(t), name), []byte(updated), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Root returns the root folder of the repository.
func Root(t testing.TB) string {
	t.Helper()
	root := machine.Source()
	if !filepath.IsAbs(root) {
		t.Fatal("no go.mod above the working directory")
	}
	return root
}
