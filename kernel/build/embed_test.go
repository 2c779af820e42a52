package build

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmbed builds one program with embedded files after another.
func TestEmbed(t *testing.T) {
	c := newCell(t)
	c.opts.NotebookDir = filepath.Join(filepath.Dir(c.opts.Dir), "note books")
	if err := os.MkdirAll(filepath.Join(c.opts.NotebookDir, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := func(imports, vars, body string) string {
		return "package main\n\nimport (\n" + imports + "\n)\n\nvar (\n" + vars + "\n)\n\nfunc main() { " + body + " }\n"
	}
	const words, files = "\twords string = gonbatch__embed_words(\"a.txt\")", "\tfiles embed.FS = gonbatch__embed_files(\"data\", \"*.txt\")"
	const list = "names, _ := fs.Glob(files, \"*/*\"); b, _ := files.ReadFile(\"a.txt\"); println(len(names), names[0], string(b))"
	steps := []struct {
		name, file, text, main, want string
		test                         bool
	}{
		{name: "none", main: program("", "\tn = 1", "println(n)"), want: "1\n"},
		{name: "missing", main: program("\t_ \"embed\"", words, "println(words)"), want: "# cell\n./main.go:8:2: //go:embed a.txt: there is no such file in the notebook's folder, " + c.opts.NotebookDir + "\n"},
		{name: "a text", file: "a.txt", text: "one", main: program("\t_ \"embed\"", words, "println(words)"), want: "one\n"},
		{name: "the file is changed", file: "a.txt", text: "two", main: program("\t_ \"embed\"", words, "println(words)"), want: "two\n"},
		{name: "without an import", main: program("", words+"\n\tn = len(words)", "println(n)"), want: "3\n"},
		{name: "files", file: "data/x[1].bin", text: "x", main: program("\t\"embed\"\n\t\"io/fs\"", files, list), want: "1 data/x[1].bin two\n"},
		{name: "under another name", main: program("\te \"embed\"\n\t\"io/fs\"", strings.Replace(files, "embed.FS", "e.FS", 1), list), want: "1 data/x[1].bin two\n"},
		{name: "without a package name", main: program("\t. \"embed\"\n\t\"io/fs\"", strings.Replace(files, "embed.FS", "FS", 1), list), want: "1 data/x[1].bin two\n"},
		{name: "of another type", main: program("", "\tn = 2\n\twords int = gonbatch__embed_words(\"a.txt\")", "println(n, words)"), want: "# cell\n./main.go:9:5: go:embed cannot apply to var of type int\n"},
		{name: "a source", file: "main.go", main: program("", "\twords string = gonbatch__embed_words(\"*.go\")", "println(words)"), want: "# cell\n./main.go:8:2: //go:embed *.go: the go command would compile main.go into the program: move it into a subfolder\n"},
		{name: "none again", main: program("", "\tn = 2", "println(n)"), want: "2\n"},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			if step.file != "" {
				c.write(t, "../note books/"+step.file, step.text)
			}
			c.write(t, "main.go", step.main)
			if got, _ := c.run(t); got != step.want {
				t.Errorf("%q, want %q", got, step.want)
			}
		})
	}
}

// TestEmbedInTest: the tests of a cell have the embedded files.
func TestEmbedInTest(t *testing.T) {
	c := newCell(t)
	c.opts.NotebookDir = t.TempDir()
	c.opts.Verb = []string{"test", "-c"}
	if err := os.WriteFile(filepath.Join(c.opts.NotebookDir, "a.txt"), []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	c.write(t, "main_test.go", "package main\n\nimport \"testing\"\n\ntype text string\n\nvar words text = gonbatch__embed_words(\"a.txt\")\n\nfunc TestWords(t *testing.T) { println(words) }\n")
	if got, _ := c.run(t); got != "one\nPASS\n" {
		t.Errorf("%q", got)
	}
}

// TestEmbeddedContentCounts: when an embedded file has changed, a kept variable begins again, and
// so does a training run.
func TestEmbeddedContentCounts(t *testing.T) {
	dir := t.TempDir()
	b := &builder{Options: Options{Verb: []string{"build"}, NotebookDir: dir, Dir: t.TempDir(), Plans: t.TempDir(), Cell: t.TempDir(), Checkpoints: "/places"}}
	hashes, places := map[string]bool{}, map[string]bool{}
	const source = "package main\n\nvar words string = gonbatch__embed_words(\"a.txt\")\n\nfunc main() { println(words) }\n"
	if err := os.WriteFile(filepath.Join(b.Dir, "main.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "one"} {
		if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if messages, err := b.embed([]byte(source)); err != nil || len(messages) > 0 {
			t.Fatalf("%s, %v", messages, err)
		}
		hashes[b.declarations(source)["words"]] = true
		b.noteTraining()
		training, err := ReadTraining(b.Cell)
		if err != nil {
			t.Fatal(err)
		}
		places[training.Place] = true
	}
	if len(hashes) != 2 || len(places) != 2 {
		t.Errorf("%d hashes and %d places of two contents", len(hashes), len(places))
	}
}
