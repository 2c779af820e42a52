package build

import "testing"

// TestCodeHash: only what a program needs makes it another one.
func TestCodeHash(t *testing.T) {
	const program = "package main\n\nimport \"fmt\"\n\nvar (\n\tunused = 1\n\trate = 0.1\n)\n\ntype net struct{}\n\nfunc (net) size() int { return 3 }\n\nfunc helper() {}\n\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}\n"
	tests := []struct {
		name, source string
		same         bool
	}{
		{"moved", "package main\n\ntype net struct{}\nfunc (net) size() int { return 3 }\nvar rate = 0.1\n// said\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}\nfunc other() {}", true},
		{"another value", "package main\n\ntype net struct{}\nfunc (net) size() int { return 3 }\nvar rate = 0.2\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}", false},
		{"another method", "package main\n\ntype net struct{}\nfunc (net) size() int { return 4 }\nvar rate = 0.1\nfunc main() {\n\tfmt.Println(rate, net{}.size())\n}", false},
		{"with an init", program + "func init() { rate = 3 }", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if same := codeHash(program) == codeHash(tt.source); same != tt.same {
				t.Errorf("the same: %v, want %v", same, tt.same)
			}
		})
	}
	if got := codeHash("package main\nfunc"); got != "" {
		t.Errorf("%q of what is no program", got)
	}
}
