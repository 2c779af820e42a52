package kernel

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

// TestShareKept: before the ranks of a program start, each has rank 0's value of a variable, unless
// it has its own. What rank 0 keeps then does not reach the others.
func TestShareKept(t *testing.T) {
	dir, cell := t.TempDir(), t.TempDir()
	write := func(rank int, name, text string) {
		t.Helper()
		if err := rundir.WriteFileAtomic(rundir.KeptValue(dir, name, rank), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(0, "n", "zero")
	write(0, "weights", "zero")
	write(2, "weights", "two")
	if err := os.WriteFile(filepath.Join(cell, "ranks"), []byte("3 4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]int{"/s/seed/ranks": 3, "/s/cell.run": 1} {
		n, err := ranksOf([]string{command, "x"}, cell, func(string) string { return "" })
		if err != nil || n != want {
			t.Errorf("%s: %d ranks, %v, want %d", command, n, err, want)
		}
		if err := shareKept(dir, n); err != nil {
			t.Fatal(err)
		}
	}
	write(0, "n", "new")
	write(0, "weights", "new")
	for rank, want := range []map[string]string{{"n": "new", "weights": "new"}, {"n": "zero", "weights": "zero"}, {"n": "zero", "weights": "two"}, {}} {
		for _, name := range []string{"n", "weights"} {
			text, err := os.ReadFile(rundir.KeptValue(dir, name, rank))
			if string(text) != want[name] || (err == nil) != (want[name] != "") {
				t.Errorf("rank %d's %s is %q, %v; want %q", rank, name, text, err, want[name])
			}
		}
	}
}

// TestRanksAreInterruptible: no rank of a cell starts with SIGINT ignored, so that an interrupt
// ends all of them.
func TestRanksAreInterruptible(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "ranks.sh")
	template, err := templates.ReadFile("ranks.sh.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("{{cell}}", dir, "{{celldir}}", rundir.EnvCellDir).Replace(string(template))
	for name, text := range map[string]string{script: text, filepath.Join(dir, "ranks"): "3 4711\n"} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(script, "/bin/sh", "-c", "grep SigIgn /proc/$$/status").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var sets []string
	for line := range strings.Lines(string(out)) {
		_, set, _ := strings.Cut(line, "SigIgn:")
		sets = append(sets, strings.TrimSpace(set))
	}
	if len(sets) != 3 || len(slices.Compact(sets)) != 1 {
		t.Errorf("the ranks ignore other signals than rank 0:\n%s", out)
	}
}
