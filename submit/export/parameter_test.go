package export

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/nbformat"
	"gonbatch/submit/export/input"
	"gonbatch/submit/export/nbcell"
)

// tagged returns a notebook with a cell tagged parameters and a main cell.
func tagged(source string) *nbformat.Notebook {
	nb := cells(source, "%%\nprintln(1)")
	nb.Cells[0].Tags = []string{nbcell.ParametersTag}
	return nb
}

func TestParameterValues(t *testing.T) {
	tests := []struct{ name, cell, param, value, want string }{
		{"int", "var epochs = 2", "epochs", "3", "var epochs = 3\n"},
		{"leading zeros", "var epochs = 2", "epochs", "010", "var epochs = 10\n"},
		{"zeros", "var epochs = 2", "epochs", "000", "var epochs = 0\n"},
		{"leading zeros, negative", "var epochs = 2", "epochs", "-008", "var epochs = -8\n"},
		{"octal", "var epochs = 2", "epochs", "0o10", "var epochs = 0o10\n"},
		{"negative", "var epochs = 2", "epochs", "-0x10", "var epochs = -0x10\n"},
		{"int stays int", "var n = 1", "n", "+7", "var n = 7\n"},
		{"float stays float", "var lr = 1e-3", "lr", "2", "var lr = 2.0\n"},
		{"one of two", "var lr, name = 1e-3, \"x\"", "lr", "5e-4", "var lr = 0.0005\n"},
		{"the other of two", "var lr, name = 1e-3, \"x\"", "name", "a \"b\"\n$(c)", "var name = \"a \\\"b\\\"\\n$(c)\"\n"},
		{"typed", "var x float32 = 2 // note", "x", "0.1", "var x float32 = 0.1 // note\n"},
		{"converted", "var x = uint8(3)", "x", "255", "var x = uint8(255)\n"},
		{"own type", "type mode string\nvar m = mode(\"a\")", "m", "b", "var m = mode(\"b\")\n"},
		{"no value", "var n int", "n", "3", "var n int = 3\n"},
		{"bool", "var on = false", "on", "true", "var on = true\n"},
		{"const", "const rate = 0.5", "rate", "2", "const rate = 2.0\n"},
		{"in a block", "var (\n\ta = 1\n\tb = 2\n)", "b", "9", "var b = 9\n"},
		{"duration", "var wait = 3 * time.Minute", "wait", "90s", "var wait = time.Duration(90000000000)\n"},
		{"list", "var sizes = []int{1}", "sizes", "[3, 4]", "var sizes = []int{3, 4}\n"},
		{"empty list", "var sizes []int", "sizes", "[]", "var sizes []int = []int{}\n"},
		{"list of strings", "var names = []string{}", "names", "[a, \"b, c\", 3]", "var names = []string{\"a\", \"b, c\", \"3\"}\n"},
		{"own list type", "type sizes []float64\nvar s = sizes{1}", "s", "[1, 2.5]", "var s = sizes{1.0, 2.5}\n"},
		{"map of lists", "var m = map[string][]float32{}", "m", "{a: [1], b: []}", "var m = map[string][]float32{\"a\": []float32{1.0}, \"b\": []float32{}}\n"},
		{"over lines", "var text = `a\nb`\nvar z = 1", "text", "x", "var text = \"x\"\n"},
		{"depends on another cell", "var a = other()\nvar b = 2", "b", "4", "var b = 4\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(tagged(tt.cell), Options{SourceDir: sourceDir(t), Parameters: map[string]string{tt.param: tt.value}})
			if err != nil {
				t.Fatal(err)
			}
			program := string(m.Files["cell-2/main.go"])
			if !strings.Contains(program, tt.want) {
				t.Errorf("%q is not in:\n%s", tt.want, program)
			}
			checkFormatted(t, m)
		})
	}
}

// TestParameterLines: replacing a value of several lines doesn't change the numbers of the lines
// below.
func TestParameterLines(t *testing.T) {
	m, err := FromNotebook(tagged("var text = `a\nb\nc`\nvar z = bad"), Options{SourceDir: sourceDir(t), Parameters: map[string]string{"text": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	if program := string(m.Files["cell-2/main.go"]); !strings.Contains(program, "//line n.ipynb[cell 1]:4:1\nvar z = bad") {
		t.Errorf("z is not said to be in line 4:\n%s", program)
	}
}

func TestParameterMistakes(t *testing.T) {
	const cell = "var epochs = 2\nvar rate, name = 1e-3, \"x\"\nvar small int8 = 1\nvar list = []int{1}\nvar f = flag.Int(\"size\", 3, \"how many\")\n" +
		"var p, q = pair()\nconst (\n\tA = iota\n\tB\n)\nvar on = true\nvar other = unknown()\nvar count uint = 1\nvar r32 float32 = 1\nvar d time.Duration\nvar table = map[string]int{}\nvar waits []time.Duration"
	tests := []struct{ name, param, value, want string }{
		{"unknown", "epcohs", "3", "-p epcohs=3: n.ipynb declares no parameter epcohs; did you mean epochs?\nits parameters, in cell 1, are epochs, rate, name, small, list, f, p, q, A, B, on, other, count, r32, d, table, waits"},
		{"not an int", "epochs", "many", "n.ipynb, cell 1, line 1: -p epochs=many: not a whole number, and its type is int; give one such as 20 or -3\n\tvar epochs = 2"},
		{"a float for an int", "epochs", "2.5", "-p epochs=2.5: not a whole number"},
		{"code", "epochs", "2; os.Exit(1)", "not a whole number"},
		{"not a float", "rate", "fast", "-p rate=fast: not a number, and its type is float64; give one such as 5e-4"},
		{"no number", "rate", "NaN", "-p rate=NaN: not a number"},
		{"too big", "small", "128", "line 3: -p small=128: does not fit into int8"},
		{"too big for a float", "r32", "1e39", "-p r32=1e39: does not fit into float32"},
		{"negative unsigned", "count", "-1", "-p count=-1: not a whole number, and its type is uint; give one such as 20\n"},
		{"not a truth value", "on", "maybe", "-p on=maybe: not a bool; give true or false"},
		{"not a duration", "d", "3", "-p d=3: not a time.Duration; give one such as 90s or 1h30m"},
		{"no list", "list", "1", "line 4: -p list=1: its type is []int; give one such as [1, 2]"},
		{"a list of other things", "list", "[1, x]", "line 4: -p list=[1, x]: element 2: x: not a whole number, and its type is int"},
		{"a list in a list", "list", "[[1]]", "-p list=[[1]]: element 1: its type is int"},
		{"a key twice", "table", "{a: 1, a: 2}", "-p table={a: 1, a: 2}: a is there twice"},
		{"two documents", "list", "[1]\n---\n[2]", "its type is []int; give one such as [1, 2]"},
		{"durations in a list", "waits", "[90s]", "element 1: only lists and maps of numbers, strings and booleans can be set"},
		{"half a list", "list", "[1", "-p list=[1: its type is []int; give one such as [1, 2]"},
		{"a flag", "f", "1", "-p f=1: it is the flag size; give it after --, as in: submit notebook.ipynb -- -size 1"},
		{"from a call", "p", "1", "-p p=1: its type cannot be known from this cell"},
		{"a repeated const", "B", "1", "line 9: -p B=1: B has no value of its own but repeats the line above; give it one"},
		{"not known alone", "other", "1", "-p other=1: its type cannot be known from this cell; declare it with a number, a string or a boolean"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := FromNotebook(tagged(cell), Options{SourceDir: sourceDir(t), Parameters: map[string]string{tt.param: tt.value}})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
	t.Run("no parameters", func(t *testing.T) {
		want := "-p x=2: n.ipynb declares no parameter x: no cell with a var or const is tagged parameters; tag the one that declares it"
		_, err := FromNotebook(cells("var x = 1", "%%\nprintln(x)"), Options{SourceDir: sourceDir(t), Parameters: map[string]string{"x": "2"}})
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	})
}

func TestParametersAndFlags(t *testing.T) {
	nb := cells("// Epochs.\nvar epochs = 2\nvar lr, name = 1e-3, \"x\"\nvar n int",
		"var size = flag.Int(\"size\", 3, \"how many\")\nvar text string\nfunc init_x() {\n\tflag.StringVar(&text, \"text\", \"a\"+\"b\", \"what\")\n\tflag.Func(\"f\", \"a func\", nil)\n}",
		"var size = flag.Int(\"size\", 4, `how many now`)\nvar epochs = 5\n%%\nprintln(1)")
	nb.Cells[0].Tags = []string{nbcell.ParametersTag}
	m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t), Parameters: map[string]string{"epochs": "7"}})
	if err != nil {
		t.Fatal(err)
	}
	at := func(n int) nbcell.Ref { return nbcell.Ref{Notebook: "n.ipynb", Number: n} }
	if diff := cmp.Diff([]input.Parameter{
		{Ref: at(1), Line: 2, Name: "epochs", Type: "int", Default: "2"}, {Ref: at(1), Line: 3, Name: "lr", Type: "float64", Default: "1e-3"},
		{Ref: at(1), Line: 3, Name: "name", Type: "string", Default: `"x"`}, {Ref: at(1), Line: 4, Name: "n", Type: "int", Default: "0"},
	}, m.Parameters); diff != "" {
		t.Errorf("parameters: %s", diff)
	}
	if diff := cmp.Diff([]input.Flag{
		{Ref: at(2), Name: "text", Type: "string", Default: `"a"+"b"`, Usage: "what"}, {Ref: at(2), Name: "f", Type: "func", Usage: "a func"},
		{Ref: at(3), Name: "size", Type: "int", Default: "4", Usage: "how many now"},
	}, m.Flags); diff != "" {
		t.Errorf("flags: %s", diff)
	}
	want := []nbcell.Note{{Ref: at(3), Line: 1, Message: "epochs is declared again here, so -p epochs has no effect from this cell on"}}
	if diff := cmp.Diff(want, m.Warnings); diff != "" {
		t.Errorf("warnings: %s", diff)
	}
}

// TestParameterFile: an error in a value from a file names its place.
func TestParameterFile(t *testing.T) {
	nb := cells("var small uint8 = 1", "%%\nprintln(small)")
	nb.Cells[0].Tags = []string{nbcell.ParametersTag}
	for name, want := range map[string]string{"small": "p.yaml, line 3: small: 300: ", "smal": "p.yaml, line 3: smal: 300: n.ipynb declares no parameter smal"} {
		_, err := FromNotebook(nb, Options{SourceDir: sourceDir(t), Parameters: map[string]string{name: "300"}, ParameterPlaces: map[string]string{name: "p.yaml, line 3"}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
