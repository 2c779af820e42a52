package gocell

import (
	"fmt"
	"strings"
	"testing"
)

// TestRemarks: lines of strings and comments that GoNB takes for something else, and mains that do
// not run.
func TestRemarks(t *testing.T) {
	tests := []struct{ name, source, want, text string }{
		{"Go", "%%\nx := `a`\n!ls", "[]", ""},
		{"a command", "var s = `a\n!echo \\\n x\nb`", "[{2 GoNB runs a line that begins with !, also inside a string, and drops it from the string: indent the line, or write the string in double quotes, with \\n between its lines}]", "var s = `a\nb`\n"},
		{"a clause", "var s = `\npackage a\n`", "[{2 GoNB drops a line that begins with \"package\", also inside a string: indent the line, or write the string in double quotes, with \\n between its lines}]", "var s = `\n`\n"},
		{"a mark", "var s = `\n% \n`", "[{2 GoNB drops a line with only %, also inside a string: indent the line, or write the string in double quotes, with \\n between its lines}]", "var s = `\n`\n"},
		{"a comment", "/*\n//gonb:%time\npackage a\n*/", "[{2 GoNB runs a line that begins with %, also inside a comment: indent the line}]", "/*\n\n\n*/\n"},
		{"not closed", "var s = `\n!ls", "[{2 GoNB runs a line that begins with !, also inside a string, and drops it from the string: indent the line, or write the string in double quotes, with \\n between its lines}]", "var s = `\n"},
		{"a whole cell", "%%bash\necho `\n!x`", "[]", "\n\n\n"},
		{"tests and a main", "%test\nfunc TestA(t *testing.T) {}\n%%\nf()", "[{3 the cell runs its tests, because it has a line %test, and not the main that %% begins: put them into two cells}]", ""},
		{"arguments alone", "%args -n 3", "[{1 these are for the next program, if it has a func main: write the arguments of one that %% begins below its %%}]", ""},
		{"arguments", "%%\n%args -n 3\nf()", "[]", ""},
		{"indented", "var s = `\n !ls`", "[]", "var s = `\n !ls`\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Parse(tt.source)
			if got := fmt.Sprint(c.Remarks()); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if got := WithoutGone(strings.TrimPrefix(c.File().Text(), Header)); tt.text != "" && got != tt.text {
				t.Errorf("Go %q, want %q", got, tt.text)
			}
		})
	}
}

// TestLostArguments: arguments that a later line replaces are refused.
func TestLostArguments(t *testing.T) {
	for source, want := range map[string]string{
		"%args -n 3\n%%\nf()":        "%% below has the program's arguments, and these are lost: write them after it, or move %args below it",
		"%args -n 3\n%test":          "%test below has the program's arguments, and these are lost: write them after it, or move %args below it",
		"%%\n%args -n 3\nf()":        "<nil>",
		"%args -n 3\nfunc main() {}": "<nil>",
	} {
		c := Parse(source)
		for _, call := range c.Calls {
			if err := c.CheckCall(call); call.Name() == "%args" && fmt.Sprint(err) != want {
				t.Errorf("%q: %v, want %s", source, err, want)
			}
		}
	}
}
