package relay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNamePlaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gonb_1a2b")
	file := filepath.Join(dir, "main.go")
	composed := "package main\n\nfunc f() {\n\tpanic(1)\n}\n\nfunc main() { defer gonbatch__begin()();\n\tflag.Parse()\nx()\nl[3]\ny()\ngonbatch__show(l[3])/*gonbatch__*/\n}\n"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(composed), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &execution{relay: &relay{executed: []executed{{count: 1, code: "func f() {\n\tpanic(1)\n}"}, {count: 2, code: "%%\nx()\nl[3]\ny()\nl[3]"}}}}
	tests := []struct{ name, line, want string }{
		{name: "this cell", line: "10", want: "Cell [2] Line 3"},
		{name: "of equal lines the right one", line: "12", want: "Cell [2] Line 5"},
		{name: "an earlier cell", line: "4", want: "Cell [1] Line 2"},
		{name: "no cell's", line: "1"},
		{name: "no line", line: "99"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := "\t" + file + ":" + tt.line + " +0x52"
			got := e.namePlaces(text)
			if tt.want == "" && got != text || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if short := markedPlace.ReplaceAllString(got, " $1"); tt.want != "" && short != "\t "+tt.want+" +0x52" {
				t.Errorf("in short %q", short)
			}
			if named := e.namePlaces(got); named != got {
				t.Errorf("named twice: %q", named)
			}
		})
	}
}
