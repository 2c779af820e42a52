package export

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/internal/tier"
)

// typeStory is a notebook of types that depend on each other in every way that Go has: aliases,
// embedded fields, generic types, methods of all of them, and interfaces that only a later cell
// has.
type typeStory struct {
	random    *rand.Rand
	decls     []string          // In an order in which each uses only those before it, or methods.
	made      map[string]string // Expressions of each type.
	shown     []string          // Statements of main.
	hasString map[string]bool   // Types with a method String.
}

func (s *typeStory) often() bool { return s.random.IntN(2) == 0 }

// pick returns one of the types so far.
func (s *typeStory) pick(prefix string) string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.made)) {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return names[s.random.IntN(len(names))]
}

func (s *typeStory) add(format string, args ...any) {
	s.decls = append(s.decls, fmt.Sprintf(format, args...))
}

func (s *typeStory) show(format string, args ...any) {
	s.shown = append(s.shown, fmt.Sprintf(format, args...))
}

// methods declares methods by a name of a type, which may be an alias. Fmt finds String by itself.
func (s *typeStory) methods(i int, name, parameters string) {
	receiver := []string{"x ", "", "_ "}[s.random.IntN(3)] + []string{"", "*"}[s.random.IntN(2)] + name + parameters
	s.add("func (%s) M%d() int { return f%d() }", receiver, i, i)
	s.add("func f%d() int { return %d }", i, i)
	if s.often() && !s.hasString[name] {
		s.hasString[name] = true
		s.add("func (%s) String() string { return fmt.Sprint(\"the String of \", g%d) }", strings.TrimPrefix(receiver, "*"), i)
		s.add("var g%d = %d", i, 100+i)
	}
}

func newTypeStory(seed uint64) *typeStory {
	s := &typeStory{random: rand.New(rand.NewPCG(seed, 3)), made: map[string]string{}, hasString: map[string]bool{}}
	for i := range 6 + s.random.IntN(8) {
		name := fmt.Sprintf("S%d", i)
		switch s.random.IntN(7) {
		case 0: // A struct that embeds another type.
			inner := s.pick("S")
			if inner == "" {
				s.add("type %s struct{ n int }", name)
				s.made[name] = name + "{n: 1}"
			} else {
				s.add("type %s struct {\n\t%s\n\tm int\n}", name, inner)
				s.made[name] = name + "{m: 2}"
			}
			s.methods(i, name, "")
		case 1: // An alias, and methods by it.
			base := s.pick("S")
			if base == "" || s.made["A"+base] != "" {
				continue
			}
			alias := fmt.Sprintf("A%s", base)
			s.add("type %s = %s", alias, base)
			s.made[alias] = alias + "{}"
			s.add("func (x %s) N%d() int { return %d }", alias, i, i)
			if !s.hasString[base] && s.often() {
				s.hasString[base] = true
				s.add("func (%s) String() string { return \"by an alias\" }", alias)
			}
			s.show("fmt.Println(%s.N%d())", s.made[base], i)
		case 2: // A generic type, an instance of it, and one that is embedded.
			s.add("type G%d[T any] struct{ v T }", i)
			s.methods(i, fmt.Sprintf("G%d", i), "[T]")
			s.made[fmt.Sprintf("G%d[int]", i)] = fmt.Sprintf("G%d[int]{}", i)
			if s.often() {
				s.add("type %s struct{ G%d[string] }", name, i)
				s.made[name] = name + "{}"
			}
			if s.often() {
				s.add("type I%d = G%d[bool]", i, i)
				s.made[fmt.Sprintf("I%d", i)] = fmt.Sprintf("I%d{}", i)
			}
		case 3: // An interface that types before or after may satisfy.
			s.add("type W%d interface{ M%d() int }", i, s.random.IntN(9))
			if value := s.made[s.pick("")]; value != "" {
				s.show("{\n\tx := %s\n\tif w, ok := any(&x).(W%d); ok {\n\t\tfmt.Printf(\"%%T\\n\", w)\n\t}\n}", value, i)
			}
		case 4: // A method value, or an expression, in a variable.
			if base := s.pick("AS"); base != "" {
				s.add("var v%d = fmt.Sprint(%s)", i, s.made[base])
				s.show("fmt.Println(v%d)", i)
			}
		case 5: // What acts though nothing names it.
			s.add("var _ = func() int { fmt.Println(\"acts\"); return %d }()", i)
		case 6: // A type of another kind.
			s.add("type %s []int", name)
			s.made[name] = name + "{1}"
			s.methods(i, name, "")
		}
	}
	for range 3 {
		if value := s.made[s.pick("")]; value != "" {
			s.show("{\n\tx := %s\n\tfmt.Println(x, &x)\n\tif w, ok := any(&x).(interface{ M%d() int }); ok {\n\t\tfmt.Println(w.M%[2]d())\n\t}\n}", value, s.random.IntN(9))
		}
	}
	if s.often() {
		s.random.Shuffle(len(s.decls), func(i, j int) { s.decls[i], s.decls[j] = s.decls[j], s.decls[i] })
	}
	return s
}

// sources returns the cells, of some declarations each. The first of two programs has all of them.
func (s *typeStory) sources() (all []string) {
	all = []string{"import \"fmt\""}
	for rest := s.decls; len(rest) > 0; {
		n := 1 + s.random.IntN(len(rest))
		all, rest = append(all, strings.Join(rest[:n], "\n")), rest[n:]
	}
	return append(all, "%%\nfmt.Println()", "%%\nfmt.Println()\n"+strings.Join(s.shown, "\n"))
}

// plain returns the whole program.
func (s *typeStory) plain() string {
	return "package main\n\nimport \"fmt\"\n\nvar _ = fmt.Sprint\n\n" + strings.Join(s.decls, "\n") + "\n\nfunc main() {\nfmt.Println()\n" + strings.Join(s.shown, "\n") + "\n}\n"
}

// TestRandomTypes: a job's program has what it needs of a notebook's declarations: it does the same
// as the program with all of them.
func TestRandomTypes(t *testing.T) {
	stories, dir := tier.Tries(80, 12), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module random\n\ngo 1.26\n")
	for seed := range stories {
		s := newTypeStory(uint64(seed))
		sources := s.sources()
		m, err := FromNotebook(cells(sources...), Options{SourceDir: "../.."})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(sources, "\n---\n"))
		}
		write(fmt.Sprintf("job%d/main.go", seed), string(m.Files[m.Programs()[1].Source()]))
		write(fmt.Sprintf("all%d/main.go", seed), s.plain())
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		out, err := bounded.CombinedOutput(cmd)
		if err != nil {
			return fmt.Sprintf("%s%v", out, err)
		}
		return string(bytes.ReplaceAll(out, []byte("0x"), nil))
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if out := run("go", "build", "-ldflags=-s -w", "-o", "bin/", "./..."); out != "" {
		t.Fatal(out)
	}
	for seed := range stories {
		got, want := run(fmt.Sprintf("bin/job%d", seed)), run(fmt.Sprintf("bin/all%d", seed))
		if got != want {
			t.Errorf("seed %d: the job's program prints\n%swant\n%s", seed, got, want)
		}
	}
}
