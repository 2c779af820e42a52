package kernel_test

import (
	"strings"
	"testing"
)

// TestKeptCells runs cells that keep variables on a real kernel, in one session.
func TestKeptCells(t *testing.T) {
	tests := []struct {
		name, code, status string
		text, not          string // contained and not contained in the cell's output, or in its error
	}{
		{name: "nothing is kept", code: "%keep\n%keep -d nosuch", status: "ok", text: "no variable is kept: %keep x, y keeps the values of x and y for later cells\n%keep -d nosuch: nosuch is not kept\n"},
		{name: "a registered type", code: "type square struct{ Side int }\nvar shape any\nfunc init_register() { gob.Register(square{}) }\n%keep shape\n%%\nshape = square{2}", status: "ok"},
		{name: "its value", code: "shape", status: "ok", text: "result text/plain: {2}"},
		{name: "in a test, where its type is another package's", code: "%test\nfunc TestShape(t *testing.T) { fmt.Println(shape) }", status: "ok", text: "%keep shape: the kept value does not fit"},
		{name: "no longer registered", code: "func init_register() {}\n%%\nfmt.Println(shape)", status: "ok", text: "%keep shape: the kept value does not fit interface {}: gob: name not registered"},
		{name: "registered again", code: "func init_register() { gob.Register(square{}) }\nshape", status: "ok", text: "result text/plain: {2}"},
		{name: "a helper that ends the program", code: "import system \"os\"\nvar n = 1\nfunc check(err error) {\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n%keep n\n%%\nn = 2\ncheck(os.ErrNotExist)", status: "error", text: "Line 5 ]]", not: "not saved"},
		{name: "kept by it", code: "n", status: "ok", text: "result text/plain: 2"},
		{name: "os.Exit", code: "%%\nn = 3\nfmt.Println(n)\ndefer os.Exit(0)", status: "ok", text: "3\n", not: "not saved"},
		{name: "by another name", code: "%%\nfmt.Println(n)\nn = 4\nsystem.Exit(0)", status: "ok", text: "3\n", not: "not saved"},
		{name: "kept by that", code: "n", status: "ok", text: "result text/plain: 4"},
		{name: "a mistake in os.Exit", code: "%%\nos.Exit(nosuch)", status: "error", text: "os.Exit(nosuch)\n        ^"},
		{name: "an end that saves nothing", code: "%%\nn = 5\nsyscall.Exit(0)", status: "ok", text: "%keep n: not saved, because the program ended before main returned, or while it was saving: the changes of this cell are lost\n"},
		{name: "the earlier value", code: "n", status: "ok", text: "result text/plain: 4", not: "not saved"},
		{name: "the same declaration", code: "var n = 1 // again\nn", status: "ok", text: "result text/plain: 4"},
		{name: "another one", code: "var n = 10\nn", status: "ok", text: "result text/plain: 10"},
		{name: "one that does not compile", code: "var n = 20\n%%\nn = 30\nn.nothing()", status: "error"},
		{name: "after that", code: "%%\nn++\nfmt.Println(n)", status: "ok", text: "11\n"},
		{name: "removed", code: "%rm n\n%keep", status: "ok", text: "kept: shape ("},
		{name: "and declared again", code: "var n = 10\n%keep n\nn", status: "ok", text: "result text/plain: 10"},
		{name: "changed", code: "%%\nn = 11", status: "ok"},
		{name: "a data frame", code: "import \"github.com/go-gota/gota/dataframe\"\nvar people dataframe.DataFrame\n%keep people\n%%\npeople = dataframe.ReadCSV(strings.NewReader(\"name,age\\nAda,36\\n\"))", status: "ok", not: "can't"},
		{name: "in the next cell", code: "people.Records()", status: "ok", text: "[[name age] [Ada 36]]"},
		{name: "as another rank of a world that the user describes", code: "var lent = 1\n%keep lent\n%%\nlent = 2", status: "ok"},
		{name: "which begins with rank 0's value", code: "%env RANK 1\n%env WORLD_SIZE 2\n%%\nfmt.Println(lent)\nlent = 3", status: "ok", text: "2\n"},
		{name: "and has its own then", code: "%%\nfmt.Println(lent)", status: "ok", text: "3\n"},
		{name: "rank 0's value", code: "%env RANK 0\n%%\nfmt.Println(lent)", status: "ok", text: "2\n"},
		{name: "no world", code: "%env WORLD_SIZE 1\n%rm lent", status: "ok"},
		{name: "reset", code: "%reset\n%keep", status: "ok", text: "no variable is kept"},
		{name: "and declared after it", code: "var n = 10\n%keep n\nn", status: "ok", text: "result text/plain: 10"},
	}
	var codes []string
	for _, tt := range tests {
		codes = append(codes, tt.code)
	}
	for i, end := range runCells(t, codes) {
		tt := tests[i]
		text := strings.Join(end[1:], "\n")
		if end[0] != tt.status || !strings.Contains(text, tt.text) || tt.not != "" && strings.Contains(text, tt.not) {
			t.Errorf("%s: %s, %q;\nwant %s, %q, not %q", tt.name, end[0], text, tt.status, tt.text, tt.not)
		}
	}
}
