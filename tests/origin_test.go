package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
)

// TestOrigin submits a kernel session's notebook as the kernel does, and then the run's copy of it,
// edited: the first job names the user's cells, the second those of the file.
func TestOrigin(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.writeSession(t, ".session-1.ipynb", []string{"[7]", "4"}, "func boom() {\n\tpanic(\"boom\")\n}", "%%\nboom()")
	out, err := u.submit(t, "--local", "--name", "first", "--of", "my own.ipynb", ".session-1.ipynb")
	if err == nil {
		t.Fatalf("the job succeeded:\n%s", out)
	}
	run := u.run(t)
	executed, err := os.ReadFile(run.Executed())
	if err != nil {
		t.Fatal(err)
	}
	mustHave(t, out, "rank 0: panic: boom (at my own.ipynb[cell [7]]:2)", "\nmy own.ipynb, cell [7], line 2:\n", "called from my own.ipynb, cell 4, line 2:\n")
	mustHave(t, string(executed), `"my own.ipynb, cell 4 (cell-4) of job first-`)
	mustHave(t, u.mustSubmit(t, "status", run.Name()), filepath.Join(u.folder, "my own.ipynb"))

	text, err := os.ReadFile(run.Notebook())
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.NewReplacer("func boom", "// first line\\nfunc boom", "boom()\"", "boom() // again\"").Replace(string(text))
	if err := os.WriteFile(filepath.Join(u.folder, "notebook.ipynb"), []byte(edited), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err = u.submit(t, "--local", "--name", "second", "notebook.ipynb")
	if err == nil {
		t.Fatalf("the job succeeded:\n%s", out)
	}
	mustHave(t, out, "(at notebook.ipynb[cell 1]:3)", "called from notebook.ipynb, cell 2 (id session-2), line 2:\n\tboom() // again")
}

// TestReuseRenamedCells: --from takes the values that %keep kept in the cells before, although they
// have other numbers now, and so other names.
func TestReuseRenamedCells(t *testing.T) {
	t.Parallel()
	code := []string{"var n = 1\n%keep n", "%%\nn = 42", "%%\nprintln(\"n is\", n)"}
	for _, tt := range []struct {
		name          string
		before, after []string
	}{
		{"a session that was saved", []string{"[1]", "[2]", "[3]"}, []string{"4", "5", "6"}},
		{"a session above which cells were added", []string{"1", "2", "3"}, []string{"2", "3", "4"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			u.writeSession(t, ".session-1.ipynb", tt.before, code...)
			u.mustSubmit(t, "--local", "--of", "my own.ipynb", ".session-1.ipynb")
			u.writeSession(t, ".session-1.ipynb", tt.after, code...)
			mustHave(t, u.mustSubmit(t, "--local", "--of", "my own.ipynb", "--from", tt.after[2], ".session-1.ipynb"), "n is 42")
		})
	}
	t.Run("Markdown was added", func(t *testing.T) {
		t.Parallel()
		u := newUser(t)
		u.mustSubmit(t, "--local", u.write(t, "n.ipynb", code...))
		file := filepath.Join(u.folder, "n.ipynb")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		added := strings.Replace(string(text), `"cells":[`, `"cells":[{"cell_type":"markdown","metadata":{},"source":"Some text."},`, 1)
		if err := os.WriteFile(file, []byte(added), 0o644); err != nil || added == string(text) {
			t.Fatal(err)
		}
		mustHave(t, u.mustSubmit(t, "--local", "--from", "4", "n.ipynb"), "n is 42")
	})
}

// writeSession writes a notebook as a kernel does: made from cells of my own.ipynb with these
// labels.
func (u user) writeSession(t *testing.T, name string, labels []string, sources ...string) {
	t.Helper()
	var cells []any
	for i, source := range sources {
		cells = append(cells, map[string]any{
			"id": fmt.Sprint("session-", i+1), "cell_type": "code", "source": source, "metadata": map[string]any{}, "outputs": []any{}, "execution_count": nil,
		})
	}
	text, err := json.Marshal(map[string]any{
		"nbformat": 4, "nbformat_minor": 5, "cells": cells,
		"metadata": map[string]any{nbformat.OriginKey: nbformat.Origin{Notebook: "my own.ipynb", Cells: labels}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(u.folder, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// mustHave checks that a text has all parts.
func mustHave(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s\nlacks %q", text, part)
		}
	}
}
