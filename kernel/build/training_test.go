package build

import (
	"slices"
	"strings"
	"testing"
)

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
