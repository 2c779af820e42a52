package embedded

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFilesAsGo: Files finds in random folders what Go embeds, and refuses what Go refuses.
func TestFilesAsGo(t *testing.T) {
	dir := newModule(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	names := []string{"a", "b.txt", ".h", "_u", "d", "x:y", "q?", "it's", "größe", "[1]", "_cgo_x", "go.mod", ".git", "nul", "end."}
	globs := []string{"*", "a", "d", "*/*", "d/*", "[[]*/*", "_*", "?", "[ab]*", ".h", "d/.h", "x:y", "größe", "all:*", "all:d", "all:d/*", "go.mod", "*/go.mod", "."}
	patterns := map[string]string{}
	for i := range 60 {
		name, pattern := fmt.Sprintf("p%02d", i), globs[random.IntN(len(globs))]
		patterns[name] = pattern
		files := map[string]string{"p/p.go": fmt.Sprintf("package p\n\nimport \"embed\"\n\n//go:embed %s\nvar f embed.FS\n", pattern)}
		for range 1 + random.IntN(6) {
			path := "p/" + names[random.IntN(len(names)-4)] // No go.mod next to the program.
			for depth := random.IntN(3); depth > 0; depth-- {
				path += "/" + names[random.IntN(len(names))]
			}
			if !clashes(files, path) {
				files[path] = "x"
			}
		}
		writeFiles(t, filepath.Join(dir, name), files)
	}
	for _, embeds := range listPackages(t, dir) {
		name := filepath.Base(filepath.Dir(embeds.Dir))
		got, err := Files(embeds.Dir, patterns[name])
		slices.Sort(got)
		refused := embeds.Error != nil
		if onlySource(err, embeds.EmbedFiles) {
			continue
		}
		if (err != nil) != refused || !refused && !slices.Equal(slices.Compact(got), embeds.EmbedFiles) {
			t.Errorf("seed %d, %s: %s: got %q, %v, want %q, %v", seed, name, patterns[name], got, err, embeds.EmbedFiles, embeds.Error)
		}
	}
}

// onlySource reports whether an error is about a file that Go embeds, but not next to a program.
func onlySource(err error, embeds []string) bool {
	return err != nil && strings.Contains(err.Error(), "compile p.go into") && slices.Contains(embeds, "p.go")
}

// clashes reports whether a path is a folder of a file, or the reverse.
func clashes(files map[string]string, path string) bool {
	for other := range files {
		if other == path || strings.HasPrefix(other, path+"/") || strings.HasPrefix(path, other+"/") {
			return true
		}
	}
	return false
}

// listed is a package as the go command lists it.
type listed struct {
	Dir        string
	EmbedFiles []string
	Error      *struct{ Err string }
}

func listPackages(t *testing.T, dir string) (all []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=Dir,EmbedFiles,Error", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(strings.NewReader(string(out))); dec.More(); {
		var p listed
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if filepath.Base(p.Dir) == "p" {
			all = append(all, p)
		}
	}
	if len(all) < 40 {
		t.Fatalf("the go command lists %d packages: %s", len(all), out)
	}
	return all
}
