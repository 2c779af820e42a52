package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"gonbatch/internal/tier"
	"gonbatch/kernel"
	"gonbatch/tests/jupyter"
)

// accuracyLine matches the last line that the notebook prints, such as "test/accuracy 0.9906,
// test/loss 0.0294".
var accuracyLine = regexp.MustCompile(`(?m)(?:^|>)test/accuracy (\d\.\d+), `)

// TestNotebookInJupyter executes the unchanged example notebook in a real Jupyter client, with the
// kernel that `submit kernel install` installs. It trains on one device.
func TestNotebookInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "mnist.ipynb")
	last := result.Outputs[len(result.Outputs)-1]
	if got := accuracy(t, last); got < 0.985 {
		t.Errorf("test accuracy %.4f, want at least 0.985:\n%s", got, last)
	}
	wantAll(t, last, "class", "precision", "macro F1 0.9")
	checkFall(t, printedLosses(t, last, ""), 0.7) // One for each epoch.
	checkShown(t, result, 0, 0, 0, 1)
}

// inJupyter executes an example notebook with the kernel that `submit kernel install` installs.
func inJupyter(t *testing.T, name string, env ...string) jupyter.Result {
	t.Helper()
	jupyter.Python(t)
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	submit, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	prefix := t.TempDir()
	if out, err := command(root, submit, "kernel", "install", "--spec-only", "--prefix", prefix).CombinedOutput(); err != nil {
		t.Fatalf("submit kernel install: %v\n%s", err, out)
	}
	result := jupyter.Execute(t, jupyter.Run{
		Notebook: filepath.Join(root, "notebooks", name), Kernel: kernel.Name,
		DataDir: filepath.Join(prefix, "share", "jupyter"), Folder: t.TempDir(),
		Env: append(env, "GONBATCH_SOURCE="+root, "XDG_STATE_HOME="+t.TempDir()), CellLimit: 20 * time.Minute,
	})
	if result.Error != "" {
		t.Fatalf("%s\n%s", result.Error, result.Log)
	}
	return result
}

// accuracy finds the test accuracy, between 0 and 1, in the last cell's output.
func accuracy(t *testing.T, output string) float64 {
	t.Helper()
	match := accuracyLine.FindStringSubmatch(output)
	if match == nil {
		t.Fatalf("the last output has no test accuracy:\n%s", output)
	}
	value, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, os.Environ()
	return cmd
}
