package export

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestArgsProblem: it is known before a program runs whether it would refuse its arguments, unless
// it may have flags that its source doesn't show.
func TestArgsProblem(t *testing.T) {
	const flags = "import \"flag\"\nvar (\n\tlr = flag.Float64(\"lr\", 0.1, \"rate\")\n\tfast = flag.Bool(\"fast\", false, \"\")\n)\nfunc init_v() { flag.Var(nil, \"v\", \"\") }"
	const config = "import (\n\t\"flag\"\n\t\"gonbatch/trainer\"\n)\nvar config trainer.Config\nfunc init_flags() { config.AddFlags(flag.CommandLine) }\n%%\n"
	folder := t.TempDir()
	for name, text := range map[string]string{"good.yaml": "max_epochs: 3\ncheckpoint: {keep: 2}\n", "bad.yaml": "max_epochs: 3\ncheckpoint:\n  kep: 2\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, cells, args string
		problem           string // Its beginning; "" if there is none.
		unsure            bool
	}{
		{name: "good ones", cells: flags + "\n%%\n", args: "-fast --lr 3 -v -lr=1e-3 -h rest -lrr"},
		{name: "mistyped", cells: flags + "\n%%\n", args: "-lrr 3", problem: "-lrr is not a flag of its program: did you mean -lr?; submit params lists"},
		{name: "of another type", cells: flags + "\n%%\n", args: "-lr high", problem: `invalid value "high" for flag -lr: parse error`},
		{name: "without a value", cells: flags + "\n%%\n", args: "-lr", problem: "flag needs an argument: -lr"},
		{name: "declared later", cells: "%%\nprintln(1)" + "\n---\n" + flags, args: "-lr 3", problem: "-lr is not a flag of its program; "},
		{name: "without its dash", cells: flags + "\n%%\n", args: "-fast lr=3", problem: `"lr=3" sets nothing: did you mean -lr=3,`, unsure: true},
		{name: "not parsed", cells: "func main() { println(1) }", args: "-x"},
		{name: "computed", cells: "var x = flag.Int(\"x\"+\"y\", 1, \"\")\n%%\n", args: "-z 3", problem: "-z is not a flag", unsure: true},
		{name: "read by hand", cells: "%%\nprintln(len(os.Args))", args: "-z 3", problem: "-z is not a flag", unsure: true},
		{name: "another's", cells: "import _ \"github.com/janpfeifer/must\"\n%%\n", args: "-z 3", problem: "-z is not a flag", unsure: true},
		{
			name: "the trainer's", cells: config,
			args: "-max_epochs 3 -checkpoint.off -checkpoint.kep 3", problem: "-checkpoint.kep is not a flag of its program: did you mean -checkpoint.keep?",
		},
		{name: "its file", cells: config, args: "-config good.yaml"},
		{name: "a file that a cell may write", cells: config, args: "-config none.yaml"},
		{name: "a file with a mistake", cells: config, args: "-config bad.yaml", problem: "-config " + folder + "/bad.yaml: line 3: there is no setting checkpoint.kep: did you mean checkpoint.keep?"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells(strings.Split(tt.cells, "\n---\n")...), Options{SourceDir: "../.."})
			if err != nil {
				t.Fatal(err)
			}
			problem, sure := m.ArgsProblem(m.Programs()[0], strings.Fields(tt.args), folder)
			if (problem == "") != (tt.problem == "") || !strings.HasPrefix(problem, tt.problem) || sure == tt.unsure {
				t.Errorf("%q, sure %v; want %q, %v", problem, sure, tt.problem, !tt.unsure)
			}
		})
	}
}
