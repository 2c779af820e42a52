package stage

import (
	"bytes"
	"testing"
)

// TestCode: only comments, and empty lines around them, may differ between programs that compute
// the same.
func TestCode(t *testing.T) {
	const program = "// Command a is cell 3.\npackage main\n\n//go:embed x\nvar text = `one\n\n// two`\n\nfunc main() {\n\tprintln(text - 1) // prints\n}\n"
	for _, tt := range []struct {
		name, from, to string
		same           bool
	}{
		{"a comment", "cell 3", "cell 4", true},
		{"a comment more", "func main", "// Some Markdown.\n\nfunc main", true},
		{"a comment behind code", " // prints", "", true},
		{"an empty line in a text", "one\n\n", "one\n", false},
		{"a text like a comment", "// two", "// three", false},
		{"a directive", "embed x", "embed y", false},
		{"an operator", "text - 1", "text + 1", false},
		{"a number", "- 1", "- 2", false},
	} {
		other := bytes.Replace([]byte(program), []byte(tt.from), []byte(tt.to), 1)
		if same := bytes.Equal(code([]byte(program)), code(other)); same != tt.same || bytes.Equal(other, []byte(program)) {
			t.Errorf("%s: the same is %v, want %v", tt.name, same, tt.same)
		}
	}
}
