package kernel

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLookAtPapermill: a papermill without the translator for Go is told of, with the command that
// installs it.
func TestLookAtPapermill(t *testing.T) {
	for _, test := range []struct{ name, begins, python, want string }{
		{name: "with the translator", begins: "#!DIR/python3\n", python: "exit 0"},
		{name: "without", begins: "#!DIR/python3\n", python: "exit 1", want: "DIR/papermill can't pass parameters to Go notebooks yet: run DIR/python3 -m pip install /source/kernel/papermill"},
		{name: "with options", begins: "#!DIR/python3 -s\n", python: "exit 1", want: "run DIR/python3 -m pip install"},
		{name: "by env", begins: "#!/usr/bin/env python3\n", python: "exit 1", want: "run DIR/python3 -m pip install"},
		{name: "a long path", begins: "#!/bin/sh\n'''exec' DIR/python3 \"$0\" \"$@\"\n", python: "exit 1", want: "run DIR/python -m pip install"},
		{name: "no papermill", want: "papermill is not installed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			python := "#!/bin/sh\n" + test.python + "\n"
			files := map[string]string{"python3": python, "python": python, "papermill": strings.ReplaceAll(test.begins, "DIR", dir)}
			if test.begins == "" {
				files = nil
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			found, err := lookAtPapermill([]string{"PATH=" + dir}, "/source")
			if want := strings.ReplaceAll(test.want, "DIR", dir); want == "" && (err != nil || !strings.HasPrefix(found, dir)) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q, %v, want %q", found, err, want)
			}
		})
	}
}
