package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestProgram(t *testing.T) {
	tests := []struct {
		name, program string
		mayFail       bool
		code          int
		output        string
	}{
		{"ends well", "exit 0", true, 0, ""},
		{"gets its arguments", `printf '<%s>' "$@"`, false, 0, "<a b><$c>"},
		{"reads its input", "cat", true, 0, "input"},
		{"fails", "exit 3", false, 3, ""},
		{"may fail", "exit 3", true, 0, "gonbatch: n.ipynb, cell 2 may fail: it ended with exit code 3\n"},
		{"wants to be started again", `: > "$GONBATCH_STOPPED"; exit 75`, true, 75, ""},
		{"fails with that code", "exit 75", true, 0, "gonbatch: n.ipynb, cell 2 may fail: it ended with exit code 75\n"},
		{"was told to stop", "trap 'echo saved; exit 75' USR1; kill -USR1 $PPID; while :; do sleep 0.05; done", true, 75, "saved\n"},
		{"was cancelled", "kill -TERM $PPID; while :; do sleep 0.05; done", true, 143, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			script := Script{Notebook: "n.ipynb", Place: "n.ipynb, cell 2", MayFail: tt.mayFail}.Program("train")
			for name, text := range map[string]string{"train": "#!/bin/bash\n" + tt.program + "\n", "train.sh": string(script)} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "train.sh"), "a b", "$c")
			cmd.Env = append(os.Environ(), "GONBATCH_STOPPED="+filepath.Join(dir, "stopped"))
			cmd.Stdin = strings.NewReader("input")
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || string(out) != tt.output {
				t.Errorf("exit code %d, output %q; want %d, %q", code, out, tt.code, tt.output)
			}
		})
	}
}
