package tests

import (
	"encoding/json"
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
	u.writeSession(t, ".session-1.ipynb", "func boom() {\n\tpanic(\"boom\")\n}", "%%\nboom()")
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

// writeSession writes a notebook of two cells as a kernel does: made from cell [7], which isn't in
// the user's notebook, and cell 4.
func (u user) writeSession(t *testing.T, name, unsaved, saved string) {
	t.Helper()
	cell := func(id, source string) map[string]any {
		return map[string]any{"id": id, "cell_type": "code", "source": source, "metadata": map[string]any{}, "outputs": []any{}, "execution_count": nil}
	}
	text, err := json.Marshal(map[string]any{
		"nbformat": 4, "nbformat_minor": 5, "cells": []any{cell("session-1", unsaved), cell("session-2", saved)},
		"metadata": map[string]any{nbformat.OriginKey: nbformat.Origin{Notebook: "my own.ipynb", Cells: []string{"[7]", "4"}}},
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
