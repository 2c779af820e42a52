package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// TestShellCells runs shell cells between main cells, on a real cluster and on this machine.
func TestShellCells(t *testing.T) {
	t.Parallel()
	t.Run("on this machine", func(t *testing.T) {
		t.Parallel()
		shellCells(t, newUser(t), "--local", "--tasks", "2")
	})
	t.Run("on the cluster", func(t *testing.T) {
		t.Parallel()
		c := cluster.Start(t)
		u := newUser(t, c.Env()...)
		shellCells(t, u, "--nodes", "2", "--mpi", "pmix", "--follow")
		wantAll(t, read(t, u.run(t).RankLog(0)), "first node "+c.Nodes[0]+"\n")
		t.Run("a failing cell", func(t *testing.T) { failingShell(t, newUser(t, c.Env()...)) })
	})
}

// shellCells checks that each command runs once, in order, on the first node, that the main cell
// can read what it writes, and that only rank 0 captures its output.
func shellCells(t *testing.T, u user, flags ...string) {
	t.Helper()
	name := u.write(t, "shell.ipynb",
		"%%writefile \"odd 'name'.txt\"\nfrom a cell: $(touch pwned) `x`",
		"%env GREETING \"two  words\"\n!echo once >> count.txt; echo \"first node $(hostname)\"; echo \"$GREETING in $(pwd)\"",
		"%%\ntext, err := os.ReadFile(\"odd 'name'.txt\")\nif err != nil {\n\tlog.Fatal(err)\n}\nfmt.Printf(\"main: %s\", text)",
		"%capture captured.txt\n%%\nfmt.Println(\"captured\")", "!echo \"file: $(wc -l < captured.txt)\"",
		"%%bash\nif [ -e pwned ]; then exit 1; fi\necho \"count: $(wc -l < count.txt)\"")
	u.mustSubmit(t, append(flags, name)...)
	run := u.run(t)
	log := read(t, run.RankLog(0))
	for _, text := range []string{"two  words in " + u.folder + "\n", "main: from a cell: $(touch pwned) `x`\n", "captured\n", "file: 1\n", "count: 1\n"} {
		at := strings.Index(log, text)
		if at < 0 {
			t.Fatalf("%q is not in rank 0's log, or not in its place:\n%s", text, read(t, run.RankLog(0)))
		}
		log = log[at:]
	}
	if other := read(t, run.RankLog(1)); other != "main: from a cell: $(touch pwned) `x`\ncaptured\n" {
		t.Errorf("rank 1's log has more than the main cell's output:\n%s", other)
	}
}

// failingShell checks that a failed command's exit code becomes the job's, that the message names
// its cell, and that nothing runs after it.
func failingShell(t *testing.T, u user) {
	name := u.write(t, "bad.ipynb", "!true\n!echo about to fail; exit 9", "%%\nos.WriteFile(\"ran\", nil, 0o644)")
	out, err := u.submit(t, "--nodes", "2", "--follow", name)
	if err == nil {
		t.Errorf("the job succeeded:\n%s", out)
	}
	wantAll(t, out, ", exit code 9\n", "bad.ipynb, cell 1 (id cell-a), line 2: !echo about to fail; exit 9 ended with exit code 9")
	if m, err := rundir.ReadManifest(u.run(t)); err != nil || m.State != "failed" || m.ExitCode == nil || *m.ExitCode != 9 {
		t.Errorf("manifest: %+v, %v", m, err)
	}
	if _, err := os.Stat(filepath.Join(u.folder, "ran")); err == nil {
		t.Error("the main cell ran after the failed command")
	}
}
