package kernel_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed testdata/input.py
var inputScript string

// inputCell is a cell for input.py, inputEnd its result.
type inputCell struct {
	Code        string            `json:"code"`
	Answers     []string          `json:"answers"`
	Expressions map[string]string `json:"expressions"`
	Raw         string            `json:"raw"`
	Metadata    string            `json:"metadata"`
}

type inputEnd struct {
	Status      string                    `json:"status"`
	Text        string                    `json:"text"`
	Passwords   []bool                    `json:"passwords"`
	Expressions map[string]map[string]any `json:"expressions"`
}

// TestInput: programs and shell commands that read get the user's input, or an empty input;
// expressions are refused.
func TestInput(t *testing.T) {
	const scan = "%%\nlines := bufio.NewScanner(os.Stdin)\nfor i := 0; i < 2 && lines.Scan(); i++ {\n\tfmt.Println(\"got\", lines.Text())\n}\nfmt.Println(lines.Err())"
	tests := []struct {
		name string
		cell inputCell
		want string
	}{
		{name: "program", cell: inputCell{Code: scan, Answers: []string{"one", "two words"}}, want: "ok got one\ngot two words\n<nil>\n [false false]"},
		{name: "nobody to ask", cell: inputCell{Code: scan}, want: "ok <nil>\n []"},
		{name: "shell", cell: inputCell{Code: "!read -r x; echo \"x=$x\"", Answers: []string{"a b"}}, want: "ok x=a b\n [false]"},
		{name: "password", cell: inputCell{Code: "%with_password\n!read -r x; echo ${#x}", Answers: []string{"secret"}}, want: "ok 6\n [true]"},
		{name: "shell, nobody to ask", cell: inputCell{Code: "!cat"}, want: "ok  []"},
		{name: "nothing read", cell: inputCell{Code: "%%\nfmt.Println(1)", Answers: []string{"unread"}}, want: "ok 1\n []"},
		{name: "nothing is left from before", cell: inputCell{Code: scan, Answers: []string{"three", "four"}}, want: "ok got three\ngot four\n<nil>\n [false false]"},
		{
			name: "expressions", cell: inputCell{Code: "var n = 6", Expressions: map[string]string{"product": "n * 7"}},
			want: "ok  [] product:error a Go kernel evaluates no user_expressions: show the value in a cell",
		},
		{name: "only code", cell: inputCell{Raw: `{"code": "var later = n"}`, Metadata: "{}"}, want: "ok  []"},
		{name: "nulls", cell: inputCell{Raw: `{"code": "", "silent": null, "store_history": null, "user_expressions": null, "allow_stdin": null, "stop_on_error": null}`, Metadata: "null"}, want: "ok  []"},
		{name: "another code", cell: inputCell{Raw: `{"code": 5}`, Metadata: "{}"}, want: "error ProtocolError []"},
		{name: "a list of metadata", cell: inputCell{Raw: `{"code": "%%\nfmt.Println(n)", "silent": false}`, Metadata: "[]"}, want: "ok  []"},
		{name: "no content", cell: inputCell{Raw: "null", Metadata: "{}"}, want: "ok  []"},
		{name: "a list of content", cell: inputCell{Raw: "[]", Metadata: "{}"}, want: "error ProtocolError []"},
		{name: "the session is still there", cell: inputCell{Code: "%%\nfmt.Println(n, later)"}, want: "ok 6 6\n []"},
		{name: "no expressions of a cell that fails", cell: inputCell{Code: "!false", Expressions: map[string]string{"x": "1"}}, want: "error exit status 1\n []"},
	}
	var cells []inputCell
	for _, tt := range tests {
		cells = append(cells, tt.cell)
	}
	ends := runInput(t, cells)
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := ends[i].String(); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func (e inputEnd) String() string {
	text := fmt.Sprint(e.Status, " ", e.Text, " ", e.Passwords)
	for name, value := range e.Expressions {
		text += fmt.Sprint(" ", name, ":", value["status"], " ", value["evalue"])
	}
	return text
}

func runInput(t *testing.T, cells []inputCell) []inputEnd {
	t.Helper()
	input, err := json.Marshal(cells)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(jupyter.Python(t), "-c", inputScript)
	cmd.Env = append(os.Environ(), append(kernelEnv(t), "TMPDIR="+t.TempDir())...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := bounded.Output(cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var ends []inputEnd
	if err := json.Unmarshal(out, &ends); err != nil || len(ends) != len(cells) {
		t.Fatalf("%d results of %d cells: %v\n%s\n%s", len(ends), len(cells), err, out, stderr.String())
	}
	return ends
}
