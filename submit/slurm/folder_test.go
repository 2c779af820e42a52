package slurm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMissingFolder: a cell whose folder is missing does not run elsewhere.
func TestMissingFolder(t *testing.T) {
	s := newStart(t)
	dir := filepath.Join(t.TempDir(), "some folder")
	s.spec.Cells[0].Dir = dir
	s.programs["train"] = "#!/bin/bash\necho it runs\n"
	out, code := s.run(t, 0)
	want := "cell train: its folder " + dir + " does not exist; correct the notebook's %cd"
	if code != 1 || !strings.Contains(out, want) {
		t.Errorf("exit code %d; it should say %q:\n%s", code, want, out)
	}
	if log, err := os.ReadFile(s.spec.RunDir.RankLog(0)); err != nil || !strings.Contains(string(log), want) {
		t.Errorf("log %q, %v", log, err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, code := s.run(t, 0); code != 0 {
		t.Errorf("with the folder: exit code %d\n%s", code, out)
	}
}
