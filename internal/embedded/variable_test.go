package embedded

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// variables returns the variables of a program's text as "NAME: PATTERN|PATTERN; ...".
func variables(t *testing.T, text string) (found string, err error) {
	t.Helper()
	file, parseErr := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments)
	if parseErr != nil {
		t.Fatalf("%v:\n%s", parseErr, text)
	}
	vars, err := Variables(file, text)
	for _, v := range vars {
		found += fmt.Sprintf("%s: %s; ", v.Spec.Names[0].Name, strings.Join(v.Patterns, "|"))
	}
	return strings.TrimSuffix(found, "; "), err
}

func TestVariables(t *testing.T) {
	tests := []struct{ body, want, fails string }{
		{body: "//go:embed a.txt \"b c\" `d`\nvar x string", want: "x: a.txt|b c|d"},
		{body: "// A file.\n//go:embed a\n//go:embed b\nvar x string", want: "x: a|b"},
		{body: "//go:embed a\r\nvar x string\r\n", want: "x: a"},
		{body: "//go:embed a\n\n// A file.\n\nvar x string", want: "x: a"},
		{body: "var (\n//go:embed a\n\nx string\n//go:embed b\ny string\n)", want: "x: a; y: b"},
		{body: "// go:embed a\nvar x string"},
		{body: "//go:embedded a\nvar x string"},
		{body: "//go:generate a\nvar x string"},
		{body: "const x = `\n//go:embed a\n`\nvar y string"},
		{body: "//go:embed \"a\nvar x string", fails: "//go:embed \"a: invalid quoted string"},
		{body: "//go:embed\nvar x string", fails: "//go:embed: it names no file"},
		{body: "//go:embed a\nvar x, y string", fails: "it gives files to one variable: declare x on a line of its own"},
		{body: "//go:embed a\nvar x string = \"\"", fails: "declare x with a type and without a value, as in var x string"},
		{body: "//go:embed a\nvar x = 1", fails: "declare x with a type and without a value"},
		{body: "//go:embed a\nvar (\nx string\n)", fails: "it is above no variable"},
		{body: "//go:embed a\nfunc f() {}\nvar x string", fails: "it is above no variable"},
		{body: "func f() {\n//go:embed a\nvar x string\n_ = x\n}", fails: "it is above no variable"},
		{body: "var x string //go:embed a\nvar y string", fails: "it is above no variable"},
		{body: "var x string\n//go:embed a\n", fails: "it is above no variable"},
		{body: "//go:embed a\n// var x string\ntype y int", fails: "it is above no variable"},
	}
	for _, tt := range tests {
		got, err := variables(t, "package main\n"+tt.body+"\n")
		if tt.fails == "" && (err != nil || got != tt.want) {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.body, got, err, tt.want)
		}
		if tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)) {
			t.Errorf("%s\ngot  %s, %v\nwant %s", tt.body, got, err, tt.fails)
		}
	}
}

// pieces make up random programs; each % is a new name.
var pieces = []string{
	"//go:embed a.txt\n", "//go:embed a.txt\n", "//go:embed a.txt a.txt\n", "\n", "// A comment.\n", "/* Another. */\n", "//go:embed\n",
	"var % string\n", "var % string\n", "var % []byte\n", "var %, % string\n", "var % = 1\n", "var % string = `x`\n", "var % string //go:embed a.txt\n",
	"var (\n", "var (\n", "% string\n", "% []byte\n", "%, % string\n", "// In a group.\n", ")\n", ")\n",
	"const % = 1\n", "type % int\n", "func %() {\nvar x string\n_ = x\n}\n", "func %() {\n//go:embed a.txt\nvar x string\n_ = x\n}\n",
}

// randomProgram returns a random program that can be parsed.
func randomProgram(random *rand.Rand) string {
	for {
		var text strings.Builder
		text.WriteString("package p\n\nimport _ \"embed\"\n\n")
		for names, n := 0, 1+random.IntN(8); n > 0; n-- {
			piece := pieces[random.IntN(len(pieces))]
			for strings.Contains(piece, "%") {
				piece = strings.Replace(piece, "%", fmt.Sprint("v", names), 1)
				names++
			}
			text.WriteString(piece)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), "", text.String(), 0); err == nil && strings.Contains(text.String(), Directive) {
			return text.String()
		}
	}
}

// TestVariablesAsGo: Variables refuses exactly the random programs that Go refuses.
func TestVariablesAsGo(t *testing.T) {
	dir := newModule(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	programs := map[string]string{}
	for i := range 40 {
		name := fmt.Sprintf("p%02d", i)
		programs[name] = randomProgram(random)
		writeFiles(t, filepath.Join(dir, name), map[string]string{"p.go": programs[name], "a.txt": "a"})
	}
	cmd := exec.Command("go", "build", "./...")
	cmd.Dir = dir
	messages, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	for name, text := range programs {
		refused := strings.Contains(string(messages), name+"/p.go:") || strings.Contains(string(messages), "package m/"+name+":")
		found, err := variables(t, text)
		if (err != nil) != refused {
			t.Errorf("seed %d: Go refuses it: %v; Variables: %s, %v\n%s\n%s", seed, refused, found, err, text, messages)
		}
	}
}

// newModule returns the folder of a Go module.
func newModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"go.mod": "module m\n\ngo 1.26\n"})
	return dir
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
