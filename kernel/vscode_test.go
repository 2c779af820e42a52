package kernel_test

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gonbatch/internal/bounded"
	"gonbatch/tests/jupyter"
)

//go:embed testdata/vscode.py
var vscodeScript string

// TestVSCode replays the sequences of messages that VS Code's Jupyter extension sends to a real
// kernel. See testdata/vscode/README.md.
func TestVSCode(t *testing.T) {
	python := jupyter.Python(t)
	env := append(os.Environ(), append(kernelEnv(t), "TMPDIR="+t.TempDir())...)
	files, err := filepath.Glob("testdata/vscode/*.json")
	if err != nil || len(files) < 7 {
		t.Fatalf("sequences: %v, %v", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(python, "-c", vscodeScript, file)
			cmd.Env = env
			if out, err := bounded.CombinedOutput(cmd); err != nil {
				t.Errorf("%v\n%s", err, tail(out))
			}
		})
	}
}

// tail returns the end of a long output.
func tail(out []byte) []byte {
	const most = 6000
	return out[max(0, len(out)-most):]
}
