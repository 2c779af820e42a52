package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// codeHash returns the hash of a program's code, and the names that it uses.
func codeHash(source string) (hash string, uses []string) {
	c := readCode(source, false)
	if c == nil {
		return "", nil
	}
	return c.hash(), c.uses
}

// TestCodeHash: a program's hash depends only on what the program needs.
func TestCodeHash(t *testing.T) {
	const program = "package main\n\nimport \"fmt\"\n\nvar (\n\tunused = 1\n\trate = 0.1\n)\n\ntype net struct{}\n\nfunc (net) size() int { return 3 }\n\nfunc helper() {}\n\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}\n"
	tests := []struct {
		name, source string
		same         bool
	}{
		{"moved", "package main\n\nimport \"fmt\"\n\ntype net struct{}\nfunc (net) size() int { return 3 }\nvar rate = 0.1\n// said\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}\nfunc other() {}", true},
		{"another value", "package main\n\nimport \"fmt\"\n\ntype net struct{}\nfunc (net) size() int { return 3 }\nvar rate = 0.2\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}", false},
		{"another method", "package main\n\nimport \"fmt\"\n\ntype net struct{}\nfunc (net) size() int { return 4 }\nvar rate = 0.1\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}", false},
		{"commented and formatted", "package main\n\nimport \"fmt\"\n\ntype net struct{} // it\nfunc (net) size() int { return 3 }\nvar rate = /* slow */ 0.1\nfunc main() {\n\t// says\n\n\tfmt.Println( rate,net{}.size())\n}", true},
		{"a comment in a text", strings.Replace(program, "fmt.Println(", "fmt.Println(`// x`, ", 1), false},
		{"with another import", strings.Replace(program, "import \"fmt\"", "import (\n\t\"fmt\"\n\t\"os\"\n)", 1), true},
		{"another package of the name", strings.Replace(program, "import \"fmt\"", "import fmt \"log\"", 1), false},
		{"a package for its effects", strings.Replace(program, "import \"fmt\"", "import (\n\t\"fmt\"\n\t_ \"embed\"\n)", 1), false},
		{"a blank variable", program + "var _ = rand()", false},
		{"with C", strings.Replace(program, "import \"fmt\"", "import \"fmt\"\n\n// int n = 1;\nimport \"C\"", 1), true},
		{"with an init", program + "func init() { rate = 3 }", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first, uses := codeHash(program)
			second, _ := codeHash(tt.source)
			if same := first == second; same != tt.same {
				t.Errorf("the same: %v, want %v", same, tt.same)
			}
			if want := []string{"main", "net", "rate"}; !slices.Equal(uses, want) {
				t.Errorf("uses %q, want %q", uses, want)
			}
		})
	}
	hashOfC := func(n string) string {
		hash, _ := codeHash("package main\n\n// int n = " + n + ";\nimport \"C\"\n\nfunc main() { println(C.n) }")
		return hash
	}
	if hashOfC("1") == hashOfC("2") {
		t.Error("a program's C does not count")
	}
	hashOfAlias := func(size string) string {
		hash, _ := codeHash("package main\n\ntype net struct{}\ntype short = net\n\nfunc (short) size() int { return " + size + " }\n\nfunc main() { println(net{}.size()) }")
		return hash
	}
	if hashOfAlias("1") == hashOfAlias("2") {
		t.Error("a method that is declared on an alias of a used type does not count")
	}
	if got, _ := codeHash("package main\nfunc"); got != "" {
		t.Errorf("%q of what is no program", got)
	}
	for source, want := range map[string]bool{
		"package main\nfunc train() { trainer.New() }\nfunc main() { train() }": true, "package main\nfunc train() { trainer.New() }\nfunc main() {}": false,
	} {
		if _, uses := codeHash(source); slices.Contains(uses, trainer) != want {
			t.Errorf("%s uses %q, the trainer: want %v", source, uses, want)
		}
	}
}

// TestModuleState: a training run's place depends on the versions of the modules that it imports,
// and on the sources that they have in local folders.
func TestModuleState(t *testing.T) {
	const goMod = "module cell_%s\n\ngo 1.26\n\nrequire (\n\texample.com/near v0.0.0\n\texample.com/far %s\n\texample.com/other %s\n\texample.com/far/nested %s\n)\n\nreplace example.com/near => ../near\n%s"
	mod := func(session, far, other, nested, more string) string {
		return fmt.Sprintf(goMod, session, far, other, nested, more)
	}
	first := map[string]string{
		"go.mod": mod("1", "v1.0.0", "v1.0.0", "v1.0.0", ""),
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/far/part\"\n\t\"example.com/near/a\"\n\t\"example.com/near/idle\"\n\t\"example.com/other\"\n)\n\n" +
			"func plot() { other.Plot(idle.X) }\n\nfunc main() { fmt.Println(a.X, part.Y) }\n",
		"../near/a/a.go": "package a\n\nimport \"example.com/near/b\"\n\nvar X = b.X\n", "../near/b/b.go": "package b\n\nvar X = 1\n",
		"../near/idle/idle.go": "package idle\n", "../near/b/data.bin": "1", "../near/b/in/text.txt": "1", "../near/b/c.h": "1",
		"../near/b/embeds.go": "package b\n\nimport \"embed\"\n\nvar (\n\t//go:embed in\n\tF embed.FS\n)\n",
		"../cache/cache/download/example.com/far/@v/v1.0.0.mod": "module example.com/far\n\nrequire example.com/far/nested v1.0.0\n",
	}
	tests := []struct {
		name, file, text string
		same             bool
	}{
		{name: "another session", file: "go.mod", text: mod("2", "v1.0.0", "v1.0.0", "v1.0.0", ""), same: true},
		{name: "another version", file: "go.mod", text: mod("1", "v1.1.0", "v1.0.0", "v1.0.0", "")},
		{name: "of a module that main does not need", file: "go.mod", text: mod("1", "v1.0.0", "v1.1.0", "v1.0.0", ""), same: true},
		{name: "of a module that an imported one requires", file: "go.mod", text: mod("1", "v1.0.0", "v1.0.0", "v1.1.0", "")},
		{name: "of a nested module that none requires", file: "go.mod", text: mod("1", "v1.0.0", "v1.0.0", "v1.0.0", "require example.com/other/nested v1.0.0\n"), same: true},
		{name: "another replacement", file: "go.mod", text: mod("1", "v1.0.0", "v1.0.0", "v1.0.0", "replace example.com/far => example.com/fork v1.0.0\n")},
		{name: "a local source", file: "../near/a/a.go", text: "package a\n\nimport \"example.com/near/b\"\n\nvar X = b.X + 1\n"},
		{name: "what it imports", file: "../near/b/b.go", text: "package b\n\nvar X = 2\n"},
		{name: "another file", file: "../near/b/c.go", text: "package b\n\nfunc init() { X = 2 }\n"},
		{name: "what it embeds", file: "../near/b/in/text.txt", text: "2"},
		{name: "a file of C", file: "../near/b/c.h", text: "2"},
		{name: "data beside it", file: "../near/b/data.bin", text: "2", same: true},
		{name: "a test of it", file: "../near/b/b_test.go", text: "package b\n", same: true},
		{name: "a package that main does not need", file: "../near/idle/idle.go", text: "package idle\n\nvar X = 2\n", same: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := placeWith(t, first, "", "")
			if after := placeWith(t, first, tt.file, tt.text); (after == before) != tt.same {
				t.Errorf("the same: %v, want %v", after == before, tt.same)
			}
		})
	}
}

// placeWith returns the name of a training run's place for a module of these files, one of which
// has another text.
func placeWith(t *testing.T, files map[string]string, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	b := &builder{Options: Options{Verb: []string{"build"}, Dir: filepath.Join(dir, "module"), Cell: dir, Checkpoints: "/places", Environ: []string{"GOMODCACHE=" + filepath.Join(dir, "cache")}}}
	write := func(name, text string) {
		name = filepath.Join(b.Dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(b.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(name, text)
	}
	if name != "" {
		write(name, text)
	}
	if err := syscall.Mkfifo(filepath.Join(b.Dir, "../near/b/pipe.h"), 0o600); err != nil { // Nobody writes into it.
		t.Fatal(err)
	}
	b.noteTraining()
	training, err := ReadTraining(dir)
	if err != nil {
		t.Fatal(err)
	}
	return training.Place
}
