package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

// TestUseOneDNN: the programs get the library of the tests if it is there and nothing else was
// asked for, and the heading says what they get.
func TestUseOneDNN(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv(rundir.EnvOneDNN, "") // So that it is restored at the end.
	check := func(name, heading, library string) {
		t.Helper()
		got, err := useOneDNN()
		if err != nil || !strings.Contains(got, heading) || os.Getenv(rundir.EnvOneDNN) != library {
			t.Errorf("%s: %q with %q, %v; want %q with %q", name, got, os.Getenv(rundir.EnvOneDNN), err, heading, library)
		}
	}
	if err := os.Unsetenv(rundir.EnvOneDNN); err != nil {
		t.Fatal(err)
	}
	check("not installed", "gonbatch without oneDNN", "")
	for path, text := range map[string]string{oneDNNLibrary: "", oneDNNRequirements: "onednn-cpu-gomp==2023.2.0\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(oneDNNLibrary)
	if err != nil {
		t.Fatal(err)
	}
	check("installed", "gonbatch with oneDNN (onednn-cpu-gomp==2023.2.0).", path)
	if err := os.Setenv(rundir.EnvOneDNN, "off"); err != nil {
		t.Fatal(err)
	}
	check("off", "gonbatch with GONBATCH_ONEDNN=off.", "off")
	if got := headed("# Title\n\nText\n", "A sentence."); got != "# Title\n\nA sentence.\n\nText\n" {
		t.Errorf("%q", got)
	}
}
