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

//go:embed testdata/console.py
var consoleScript string

// TestConsole types at the real jupyter console, in a terminal.
func TestConsole(t *testing.T) {
	type step struct {
		Type string `json:"type"`
		Want string `json:"want"`
	}
	steps := []step{
		{"6 * 7\r", `Out\[1\]: 42.*In \[2\]: `},
		{"func twice(n int) int {\r", `\.\.\.: `}, // incomplete: the console asks for more
		{"return 2 * n\r", `\.\.\.: `},
		{"}\r\r", `In \[3\]: `},
		{"twice(21)\r", `Out\[3\]: 42.*In \[4\]: `},
		{"twice(nothing)\r", `undefined: nothing.*In \[5\]: `},
		{"strings.ToUpp\t", `strings\.ToUpper`},
		{"(\"go\")\r", `Out\[5\]: GO.*In \[6\]: `},
		{"!echo ready; read -r name; echo \"hello $name\"\r", `name"\s+ready\s`}, // If typed earlier, the name would go to the next prompt.
		{"gopher\r", `hello gopher.*In \[7\]: `},
		{"!echo running; sleep 600\r", `sleep 600\s+running\s`},
		{"^C", `the cell was interrupted.*In \[8\]: `},
		{"twice(4)\r", `Out\[8\]: 8.*In \[9\]: `},
		{"^D", `\?|shut`},
		{"y\r", ``},
	}
	input, err := json.Marshal(steps)
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("TEST_MARK=%d-console", os.Getpid())
	cmd := exec.Command(jupyter.Python(t), "-c", consoleScript)
	cmd.Env = append(os.Environ(), append(kernelEnv(t), mark, "TMPDIR="+t.TempDir(), "IPYTHONDIR="+t.TempDir(), "JUPYTER_CONFIG_DIR="+t.TempDir())...)
	cmd.Stdin = bytes.NewReader(input)
	if out, err := bounded.CombinedOutput(cmd); err != nil {
		t.Fatalf("%v\n%s", err, tail(out))
	}
	waitFor(t, "all processes to end", func() bool { return len(processesWith(mark)) == 0 })
}
