package script

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/bounded"
)

func TestProgram(t *testing.T) {
	tests := []struct {
		name, program string
		mayFail       bool
		code          int
		output        string
		// capture is the file for the output, add appends to it, and captured is its content at the
		// end.
		capture  string
		add      bool
		captured string
		env      []string
	}{
		{name: "ends well", program: "exit 0", mayFail: true},
		{name: "gets its arguments", program: `printf '<%s>' "$@"`, mayFail: false, code: 0, output: "<a b><$c>"},
		{name: "reads its input", program: "cat", mayFail: true, code: 0, output: "input"},
		{name: "fails", program: "exit 3", mayFail: false, code: 3, output: ""},
		{name: "may fail", program: "exit 3", mayFail: true, code: 0, output: "gonbatch: n.ipynb, cell 2 may fail: it ended with exit code 3\n"},
		{name: "wants to be started again", program: `: > "$GONBATCH_STOPPED"; exit 75`, mayFail: true, code: 75, output: ""},
		{name: "fails with that code", program: "exit 75", mayFail: true, code: 0, output: "gonbatch: n.ipynb, cell 2 may fail: it ended with exit code 75\n"},
		{name: "was told to stop", program: "trap 'echo saved; exit 75' USR1; kill -USR1 $PPID; while :; do sleep 0.05; done", mayFail: true, code: 75, output: "saved\n"},
		{name: "was cancelled", program: "kill -TERM $PPID; while :; do sleep 0.05; done", mayFail: true, code: 143, output: ""},
		{name: "ends as if interrupted", program: "exit 130", mayFail: true, output: "gonbatch: n.ipynb, cell 2 may fail: it ended with exit code 130\n"},
		{name: "ends itself by a signal", program: "kill -TERM $$", mayFail: true, output: "gonbatch: n.ipynb, cell 2 may fail: it ended with exit code 143\n"},
		{name: "is captured", program: "echo out; sleep 0.1; echo err >&2; exit 3", code: 3, output: "out\nerr\n", capture: "a b.txt", captured: "out\nerr\n"},
		{name: "is added", program: "cat", output: "input", capture: "old.txt", add: true, captured: "before\ninput"},
		{name: "is written again", program: "cat", output: "input", capture: "old.txt", captured: "input"},
		{name: "is captured, and may fail", program: "exit 3", mayFail: true, output: "gonbatch: n.ipynb, cell 2 may fail: it ended with exit code 3\n", capture: "c"},
		{
			name: "is captured until it has saved", program: "trap 'echo saved; exit 75' USR1; kill -USR1 $PPID; while :; do sleep 0.05; done",
			code: 75, output: "saved\n", capture: "c", captured: "saved\n",
		},
		{name: "is another rank", program: "echo rank $RANK", output: "rank 1\n", capture: "old.txt", captured: "before\n", env: []string{"RANK=1", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=x"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			script := Script{Capture: Capture{tt.capture, tt.add}, Notebook: "n.ipynb", Place: "n.ipynb, cell 2", MayFail: tt.mayFail}.Program("train")
			for name, text := range map[string]string{"train": "#!/bin/bash\n" + tt.program + "\n", "train.sh": string(script), "old.txt": "before\n"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "train.sh"), "a b", "$c")
			cmd.Dir, cmd.Env = dir, append(os.Environ(), append(tt.env, "GONBATCH_STOPPED="+filepath.Join(dir, "stopped"))...)
			cmd.Stdin = strings.NewReader("input")
			out, _ := bounded.CombinedOutput(cmd)
			if code := cmd.ProcessState.ExitCode(); code != tt.code || string(out) != tt.output {
				t.Errorf("exit code %d, output %q; want %d, %q", code, out, tt.code, tt.output)
			}
			if text, err := os.ReadFile(filepath.Join(dir, tt.capture)); tt.capture != "" && (err != nil || string(text) != tt.captured) {
				t.Errorf("captured %q, %v; want %q", text, err, tt.captured)
			}
		})
	}
}

// TestCaptureWithoutFolder: the message names the cell and the file, and the program does not run.
func TestCaptureWithoutFolder(t *testing.T) {
	for _, add := range []bool{false, true} {
		dir := t.TempDir()
		text := Script{Notebook: "n.ipynb", Place: "n.ipynb, cell 2", Capture: Capture{"it's/new.txt", add}}.Program("train")
		for name, text := range map[string]string{"train": "#!/bin/bash\necho runs\n", "train.sh": string(text)} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "train.sh"))
		cmd.Dir = dir
		out, _ := bounded.CombinedOutput(cmd)
		want := "gonbatch: n.ipynb, cell 2: %capture can't write it's/new.txt, for the reason above: make its folder first"
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), want) || strings.Contains(string(out), "runs") {
			t.Errorf("exit code %d, output %q; want 1, %q", code, out, want)
		}
	}
}
