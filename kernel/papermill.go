package kernel

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// papermillTime is how long Python may take to import papermill.
const papermillTime = 30 * time.Second

// errNoPapermill means that there is no papermill that could need something.
var errNoPapermill = errors.New("papermill is not installed")

// lookAtPapermill checks that the papermill on PATH has the translator with which it passes
// parameters to Go notebooks.
func lookAtPapermill(env environment, sourceDir string) (found string, err error) {
	path, err := lookPath("papermill", env.get("PATH"))
	if err != nil {
		return "", errNoPapermill
	}
	python, err := interpreter(path, env.get("PATH"))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), papermillTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", "import gonbatch_papermill")
	cmd.Env, cmd.WaitDelay = env, time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s can't pass parameters to Go notebooks yet: run %s -m pip install %s", path, python, filepath.Join(sourceDir, "kernel", "papermill"))
	}
	return path + ", with the translator for Go", nil
}

// interpreter returns the Python of a script: that in its first line or, where that would be too
// long, the one next to it.
func interpreter(script, path string) (string, error) {
	f, err := os.Open(script)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read
	line, err := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("%s: %w", script, err)
	}
	words := append(strings.Fields(strings.TrimPrefix(line, "#!")), "", "")
	switch program := filepath.Base(words[0]); {
	case !strings.HasPrefix(line, "#!"):
	case strings.Contains(program, "python"):
		return words[0], nil
	case program == "env":
		return lookPath(words[1], path)
	}
	return filepath.Join(filepath.Dir(script), "python"), nil
}
