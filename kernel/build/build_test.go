package build

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/rundir"
)

// module is a module of cells for a test, with a go command that counts its calls.
type module struct {
	opts  Options
	calls string
}

func newCell(t *testing.T) *module {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &module{calls: filepath.Join(dir, "calls"), opts: Options{
		Go: filepath.Join(dir, "go"), Verb: []string{"build"}, Dir: filepath.Join(dir, "module"), Program: filepath.Join(dir, "module", "cell"),
		Seed: filepath.Join(dir, "seed"), Cell: filepath.Join(dir, "cell"), Plans: filepath.Join(dir, "plans"),
		Environ: append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off"),
	}}
	record, err := os.ReadFile("../record.sh.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"module", "seed", "cell", "near/inner"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"go":                     fmt.Sprintf("#!/bin/sh\necho called >>%s\nexec %s \"$@\"\n", c.calls, real),
		"seed/record":            strings.NewReplacer("{{cell}}", c.opts.Cell, "{{record}}", rundir.EnvRecord).Replace(string(record)),
		"seed/program":           "#!/bin/sh\nexec \"$0.run\" \"$@\"\n",
		"seed/gonbatch__show.go": "package main\n\nimport \"fmt\"\n\nfunc gonbatch__show(values ...any) { fmt.Println(values...) }\n",
		"module/go.mod":          "module cell\n\ngo 1.26\n\nrequire example.com/near v0.0.0\n\nreplace example.com/near => ../near\n",
		"near/go.mod":            "module example.com/near\n\ngo 1.26\n",
		"near/inner/inner.go":    "package inner\n\nconst Text = \"old\"\n",
	} {
		c.write(t, "../"+name, text)
	}
	return c
}

// write writes a file below the module's folder.
func (c *module) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.opts.Dir, name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// run builds the program and runs it. It returns the output of both, and whether the go command
// built it.
func (c *module) run(t *testing.T) (output string, byGo bool) {
	t.Helper()
	_ = os.Remove(c.calls)
	var messages bytes.Buffer
	c.opts.Output = &messages
	err := Run(t.Context(), c.opts)
	_, statErr := os.Stat(c.calls)
	byGo = statErr == nil
	if err != nil {
		if !errors.Is(err, ErrBuild) {
			t.Fatal(err)
		}
		return messages.String(), byGo
	}
	out, err := bounded.CombinedOutput(exec.Command(c.opts.Program))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out), byGo
}

// TestRun builds one program after another in one module.
func TestRun(t *testing.T) {
	const program = "package main\n\nimport (\n\t\"fmt\"\n\n\t\"example.com/near/inner\"\n)\n\nfunc main() { %s }\n"
	main := func(body string) string { return fmt.Sprintf(program, body) }
	steps := []struct {
		name  string
		files map[string]string
		env   string
		want  string
		byGo  bool
	}{
		{name: "the first", files: map[string]string{"main.go": main(`fmt.Println(1, inner.Text)`)}, want: "1 old\n", byGo: true},
		{name: "the first with all packages cached", files: map[string]string{"main.go": main(`fmt.Println(0, inner.Text)`)}, want: "0 old\n", byGo: true},
		{name: "other text", files: map[string]string{"main.go": main(`fmt.Println(2, inner.Text)`)}, want: "2 old\n"},
		{name: "the same again", want: "2 old\n"},
		{name: "a mistake", files: map[string]string{"main.go": main(`fmt.Println(inner.Text, nothing)`)}, want: "# cell\n./main.go:9:39: undefined: nothing\n"},
		{name: "after the mistake", files: map[string]string{"main.go": main(`fmt.Println(2, inner.Text)`)}, want: "2 old\n"},
		{
			name: "a package that a folder has is changed", files: map[string]string{"../near/inner/inner.go": "package inner\n\nconst Text = \"changed\"\n"},
			want: "2 changed\n", byGo: true,
		},
		{name: "and is cached", files: map[string]string{"main.go": main(`fmt.Println(2, inner.Text, "")`)}, want: "2 changed \n", byGo: true},
		{name: "and by plan again", files: map[string]string{"main.go": main(`fmt.Println(3, inner.Text)`)}, want: "3 changed\n"},
		{
			name: "another import", files: map[string]string{"main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"4\\n\") }\n"},
			want: "4\n", byGo: true,
		},
		{name: "an earlier plan", files: map[string]string{"main.go": main(`fmt.Println(5, inner.Text)`)}, want: "5 changed\n"},
		{name: "another setting", env: "GOFLAGS=-mod=mod -tags=x", want: "5 changed\n", byGo: true},
		{
			name: "a file that embeds", files: map[string]string{
				"main.go": "package main\n\nimport _ \"embed\"\n\n//go:embed text\nvar text string\n\nfunc main() { print(text) }\n", "text": "6\n",
			},
			want: "6\n", byGo: true,
		},
		{name: "what it embeds is changed", files: map[string]string{"text": "7\n"}, want: "7\n", byGo: true},
		{
			name: "a value", files: map[string]string{"main.go": "package main\n\nfunc main() { gonbatch__show(6 * 7)/*gonbatch__*/ }\n"},
			want: "42\n", byGo: true,
		},
		{name: "a value by plan", files: map[string]string{"main.go": "package main\n\nfunc main() { gonbatch__show(6 * 8)/*gonbatch__*/ }\n"}, want: "48\n"},
		{
			name: "no value", files: map[string]string{"main.go": "package main\n\nfunc main() { gonbatch__show(f())/*gonbatch__*/ }\n\nfunc f() { println(8) }\n"},
			want: "8\n", byGo: true,
		},
		{name: "another file", files: map[string]string{
			"main.go": "package main\n\nfunc main() { f() }\n", "other.go": "package main\n\nfunc f() { println(9) }\n",
		}, want: "9\n", byGo: true},
		{name: "another file is changed", files: map[string]string{"other.go": "package main\n\nfunc f() { println(10) }\n"}, want: "10\n"},
		{name: "C", files: map[string]string{
			"main.go": "package main\n\n// int twice(int x) { return 2 * x; }\nimport \"C\"\n\nfunc main() { println(C.twice(11)) }\n",
		}, want: "22\n", byGo: true},
		{name: "a package that embeds", files: map[string]string{
			"main.go":                main(`fmt.Println(12, inner.Text)`),
			"../near/inner/inner.go": "package inner\n\nimport _ \"embed\"\n\nvar (\n\t//go:embed \"a text\"\n\tText string\n)\n", "../near/inner/a text": "A",
		}, want: "12 A\n", byGo: true},
		{name: "and is cached too", files: map[string]string{"main.go": main(`fmt.Println(13, inner.Text)`)}, want: "13 A\n", byGo: true},
		{name: "and by plan", files: map[string]string{"main.go": main(`fmt.Println(14, inner.Text)`)}, want: "14 A\n"},
		{name: "what the package embeds is changed", files: map[string]string{"../near/inner/a text": "B"}, want: "14 B\n", byGo: true},
		{name: "a package of loops", files: map[string]string{
			"../near/go.mod":         "module example.com/near\n\ngo 1.21\n",
			"../near/inner/inner.go": "package inner\n\nfunc Loop() (last int) {\n\tget := func() int { return 0 }\n\tfor i := 0; i < 2; i++ {\n\t\tget = func() int { return i }\n\t}\n\treturn get()\n}\n",
			"main.go":                main(`fmt.Println(15, inner.Loop())`),
		}, want: "15 2\n", byGo: true},
		{name: "and is cached as well", files: map[string]string{"main.go": main(`fmt.Println(16, inner.Loop())`)}, want: "16 2\n", byGo: true},
		{name: "by plan", files: map[string]string{"main.go": main(`fmt.Println(17, inner.Loop())`)}, want: "17 2\n"},
		{name: "its module has another version of Go", files: map[string]string{"../near/go.mod": "module example.com/near\n\ngo 1.22\n"}, want: "17 1\n", byGo: true},
	}
	c := newCell(t)
	environ := c.opts.Environ
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			c.opts.Environ = environ
			if step.env != "" {
				c.opts.Environ = append(environ, step.env)
			}
			for name, text := range step.files {
				c.write(t, name, text)
			}
			got, byGo := c.run(t)
			if got != step.want || byGo != step.byGo {
				t.Errorf("%q, by the go command: %v;\nwant %q, %v", got, byGo, step.want, step.byGo)
			}
		})
	}
}

// TestDamagedPlan: if a plan fails, the go command builds the program.
func TestDamagedPlan(t *testing.T) {
	tests := []struct {
		name   string
		damage func(plan string) string
	}{
		{name: "not a plan", damage: func(string) string { return "{" }},
		{name: "a package is gone", damage: func(plan string) string {
			return strings.ReplaceAll(plan, "packagefile fmt=", "packagefile fmt=/nowhere")
		}},
		{name: "a tool is gone", damage: func(plan string) string { return strings.ReplaceAll(plan, "/compile\"", "/compile-gone\"") }},
		{name: "the linker fails", damage: func(plan string) string { return strings.ReplaceAll(plan, "-buildmode=exe", "-buildmode=none") }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCell(t)
			for i, want := range []string{"0\n", "1\n"} {
				c.write(t, "main.go", fmt.Sprintf("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(%d) }\n", i))
				if got, byGo := c.run(t); got != want || !byGo {
					t.Errorf("%q, by the go command: %v; want %q", got, byGo, want)
				}
				plans, err := filepath.Glob(filepath.Join(c.opts.Plans, "*.json"))
				if err != nil || len(plans) != 1 {
					t.Fatalf("plans: %v, %v", plans, err)
				}
				text, err := os.ReadFile(plans[0])
				if err != nil {
					t.Fatal(err)
				}
				if damaged := tt.damage(string(text)); damaged == string(text) || os.WriteFile(plans[0], []byte(damaged), 0o600) != nil {
					t.Fatal("the plan is as it was")
				}
			}
		})
	}
}

// TestKeep: a program saves the variables of %keep when its main ends.
func TestKeep(t *testing.T) {
	c := newCell(t)
	c.fakeKeep(t)
	c.write(t, "main.go", "package main\n\nvar n = 1\n\nfunc main() { n++ }\n")
	if got, _ := c.run(t); got != "declared true\nsaved 2\n" {
		t.Errorf("%q", got)
	}
	c.write(t, "main.go", "package main\n\nvar n = 1\n\nfunc main() { help() }\n\nfunc help() {}\n")
	if got, _ := c.run(t); got != "declared true\nunused\nsaved 1\n" {
		t.Errorf("n is not used: %q", got)
	}
	c.write(t, "main.go", "package main\n\nvar n = 1\n\nfunc main() { help() }\n")
	c.write(t, "helper.go", "package main\n\nfunc help() { n = 3 }\n")
	if got, _ := c.run(t); got != "declared true\nsaved 3\n" {
		t.Errorf("used in a file of the user's: %q", got)
	}
	if err := os.Remove(filepath.Join(c.opts.Dir, "helper.go")); err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{"os.Exit(0)", "defer os.Exit(0)", "f := os.Exit; f(0)"} {
		c.write(t, "main.go", "package main\n\nimport \"os\"\n\nvar n = 1\n\nfunc main() { n = 5; "+end+" }\n")
		if got, _ := c.run(t); got != "declared true\nsaved 5\n" {
			t.Errorf("%s: %q", end, got)
		}
	}
	c.write(t, "main.go", "package main\n\nimport \"os\"\n\nvar n = 1\n\nfunc main() {\n\tos.Exit(0); nothing()\n}\n")
	if got, _ := c.run(t); got != "# cell\n./main.go:8:14: undefined: nothing\n" {
		t.Errorf("a mistake: %q", got)
	}
	c.write(t, "main.go", "package main\n\nvar n = 1\n\ntype door struct{}\n\nfunc (door) Exit(int) {}\n\nfunc main() { os := door{}; os.Exit(1); n = 7 }\n")
	if got, _ := c.run(t); got != "declared true\nsaved 7\n" {
		t.Errorf("another Exit: %q", got)
	}
	if err := os.Remove(filepath.Join(c.opts.Seed, keepFile)); err != nil {
		t.Fatal(err)
	}
	c.write(t, "main.go", "package main\n\nvar n = 1\n\nfunc main() { println(n) }\n")
	if got, _ := c.run(t); got != "1\n" {
		t.Errorf("without %%keep: %q", got)
	}
}

// fakeKeep gives the module a file that keeps its variable n, with a package keep that only prints.
func (c *module) fakeKeep(t *testing.T) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(c.opts.Dir, "../gonbatch/kernel/keep"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.write(t, "../gonbatch/go.mod", "module gonbatch\n\ngo 1.26\n")
	c.write(t, "../gonbatch/kernel/keep/keep.go", "package keep\n\nimport \"os\"\n\ntype Declared map[string]string\n\nvar Save func()\n\nfunc SaveNow() {}\n\nfunc Exit(code int) {\n\tSave()\n\tos.Exit(code)\n}\n")
	c.write(t, "go.mod", "module cell\n\ngo 1.26\n\nrequire gonbatch v0.0.0\n\nreplace gonbatch => ../gonbatch\n")
	c.write(t, "../seed/"+keepFile, `package main

import gonbatch__keep "gonbatch/kernel/keep"

func gonbatch__begin() func() {
	gonbatch__keep.Save = func() { println("saved", n) }
	println("declared", gonbatch__declared["n"] != "")
	if len(gonbatch__declared["n"]) > 7 && gonbatch__declared["n"][:7] == "unused " {
		println("unused")
	}
	return gonbatch__keep.Save
}
`)
}

// TestSharedPlans: the plan of one session builds the program of another one, whose module and
// folder have other names.
func TestSharedPlans(t *testing.T) {
	first, second := newCell(t), newCell(t)
	first.opts.Store = t.TempDir()
	second.opts.Store, second.opts.Go, second.calls = first.opts.Store, first.opts.Go, first.calls
	second.write(t, "go.mod", "module other\n\ngo 1.26\n\nrequire example.com/near v0.0.0\n\nreplace example.com/near => ../near\n")
	for i, c := range []*module{first, second} {
		c.write(t, "main.go", fmt.Sprintf("package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(%d) }\n", i))
		if got, byGo := c.run(t); got != fmt.Sprintf("%d\n", i) || byGo != (i == 0) {
			t.Errorf("session %d: %q, by the go command: %v", i, got, byGo)
		}
	}
	second.write(t, "main.go", "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(nothing) }\n")
	if got, byGo := second.run(t); got != "# cell\n./main.go:5:27: undefined: nothing\n" || byGo {
		t.Errorf("a mistake: %q, by the go command: %v", got, byGo)
	}
}

func TestPrune(t *testing.T) {
	store := t.TempDir()
	for i := range mostPlans + 5 {
		name := filepath.Join(store, fmt.Sprintf("%03d.json", i))
		at := time.Now().Add(-time.Duration(i) * time.Minute)
		if err := errors.Join(os.WriteFile(name, nil, 0o600), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	if err := prune(store); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(store, "*.json"))
	if err != nil || len(left) != mostPlans || filepath.Base(left[mostPlans-1]) != fmt.Sprintf("%03d.json", mostPlans-1) {
		t.Errorf("%d are left, the last %s, %v", len(left), left[len(left)-1], err)
	}
}
