package export

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/bounded"
)

// runShells runs a module's shell scripts in a folder, as a job does, until one fails.
func runShells(t *testing.T, m *Module, dir string) (output string, code int) {
	t.Helper()
	for _, cell := range m.Cells {
		if !cell.Shell {
			continue
		}
		script := filepath.Join(t.TempDir(), cell.Script())
		if err := os.WriteFile(script, m.Files[cell.Script()], 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(script)
		cmd.Dir = filepath.Join(dir, cell.Dir)
		cmd.Env = append(os.Environ(), "HOME="+dir)
		for name, value := range cell.Env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		out, err := bounded.CombinedOutput(cmd)
		output += string(out)
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return output, exit.ExitCode()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return output, 0
}

func TestShellSteps(t *testing.T) {
	tests := []struct {
		name, cell, want string
		code             int
		file, content    string
	}{
		{name: "line", cell: `!echo "a  b" '$(c)'; echo $((1+2))`, want: "a  b $(c)\n3\n"},
		{name: "continued line", cell: "!echo a \\\n b", want: "a b\n"},
		{name: "bash", cell: "%%bash\nfor i in 1 2; do\n  echo \"$i\"\ndone\nEND_OF_CELL() { echo '`x`'; }\nEND_OF_CELL", want: "1\n2\n`x`\n"},
		{name: "sh", cell: "%%sh\r\necho hi\r\n", want: "hi\n"},
		{name: "script", cell: "%%script cat -n\na\n$HOME", want: "     1\ta\n     2\t$HOME\n"},
		{name: "script's arguments", cell: "%%script printf \"<%s>\" \"a b\" 'c d'", want: "<a b><'c><d'>"},
		{name: "write", cell: "%%writefile f.txt\na $b `c`\n\n'\"\\", file: "f.txt", content: "a $b `c`\n\n'\"\\\n", want: "Cell contents written to \"f.txt\".\n"},
		{name: "write nothing", cell: "%%writefile f.txt", file: "f.txt", want: "Cell contents written to \"f.txt\".\n"},
		{name: "odd name", cell: "%%writefile \"a 'b' $(c) ;.txt\"\nx", file: "a 'b' $(c) ;.txt", content: "x\n", want: "Cell contents written to \"a 'b' $(c) ;.txt\".\n"},
		{name: "a failing line", cell: "!true\n!exit 3\n!echo not reached", code: 3, want: "gonbatch: n.ipynb, cell 1, line 2: !exit 3 ended with exit code 3\n"},
		{name: "a failing cell", cell: "%%bash\n\nfalse || exit 4", code: 4, want: "gonbatch: n.ipynb, cell 1, line 1: %%bash ended with exit code 4\n"},
		{name: "a command that is not there", cell: "%%script no-such-command\nx", code: 127},
		{name: "a folder that is not there", cell: "%%writefile no/such/folder\nx", code: 1},
		{name: "environment and folder", cell: "%env A \"x y\"\n%cd sub\n!echo \"$A\"; basename \"$(pwd)\"", want: "x y\nsub\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(cells(tt.cell, "%%\nprintln(1)"), Options{SourceDir: sourceDir(t)})
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
				t.Fatal(err)
			}
			output, code := runShells(t, m, dir)
			if diff := cmp.Diff(tt.want, output); code != tt.code || diff != "" && (tt.want != "" || tt.code == 0) {
				t.Errorf("exit code %d, want %d; output (-want +got):\n%s", code, tt.code, diff)
			}
			if tt.file == "" {
				return
			}
			if data, err := os.ReadFile(filepath.Join(dir, tt.file)); err != nil || string(data) != tt.content {
				t.Errorf("%s has %q, %v; want %q", tt.file, data, err, tt.content)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	m, err := FromNotebook(cells("%env NAME out", "%%writefile ~/$NAME.${NAME}\na", "%%writefile -a ~/$NAME.${NAME}\nb", "%%\nprintln(1)"), Options{SourceDir: sourceDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if output, code := runShells(t, m, dir); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, output)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "out.out")); err != nil || string(data) != "a\nb\n" {
		t.Errorf("the file has %q, %v", data, err)
	}
}

func TestShellOrder(t *testing.T) {
	nb := cells("!one", "func f() {}\n!two", "%%\nprintln(1)\n!three", "%%bash\nfour", "%%\nprintln(2)", "!five", "!six")
	nb.Cells[4].Tags = []string{"train"}
	nb.Cells[5].Tags = []string{"notebook-only"}
	nb.Cells[6].Tags = []string{"clean"}
	tests := []struct {
		name  string
		picks []string
		want  string
	}{
		{"all", nil, "shell-1 shell-2 shell-3 cell-3 shell-4 train shell-7"},
		{"a main cell with its own line", []string{"cell-3"}, "shell-3 cell-3"},
		{"a main cell without", []string{"train"}, "train"},
		{"a shell cell by its tag", []string{"clean"}, "shell-7"},
		{"a shell cell by its cell", []string{"shell-4", "train"}, "shell-4 train"},
		{"one that is left out", []string{"6"}, "shell-6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := FromNotebook(nb, Options{SourceDir: sourceDir(t), Cells: tt.picks})
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(m.CellNames(), " "); got != tt.want {
				t.Errorf("cells %s, want %s", got, tt.want)
			}
		})
	}
}

// TestWriteRemovesScripts: a second export into a folder removes the first one's scripts, but not
// the user's own.
func TestWriteRemovesScripts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	for _, cell := range []string{"!one", "var x = 1"} {
		m, err := FromNotebook(cells(cell, "!two", "%%\nprintln(1)"), Options{SourceDir: sourceDir(t)})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Write(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "own.sh"), []byte("#!/bin/bash\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := filepath.Glob(filepath.Join(dir, "*.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{filepath.Join(dir, "own.sh"), filepath.Join(dir, "shell-2.sh")}, got); diff != "" {
		t.Error(diff)
	}
}
