package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
)

// TestKilledAnywhere kills submissions at any time. Every visible run is complete, and the next
// submission removes the rest, including what another one was about to remove when it was killed.
func TestKilledAnywhere(t *testing.T) {
	w := newWorld(t, 1)
	plugins := filepath.Join(w.dir, "plugins")
	w.write("plugins/pjrt_c_api_cpu_plugin.so", "plugin")
	t.Setenv("GONBATCH_PLUGIN_DIR", plugins)
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GONBATCH_SOURCE", checkout)
	w.write("kill.ipynb", `{"cells": [{"cell_type": "code", "id": "c1", "metadata": {}, "outputs": [], "execution_count": null, "source": "%%\nfmt.Println(1)"}],
 "metadata": {"language_info": {"name": "go"}}, "nbformat": 4, "nbformat_minor": 5}`)
	began := time.Now()
	if out, err := w.submit(0, "--run-root", "killed", "kill.ipynb"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	whole := time.Since(began)
	for range tier.Tries(40, 15) {
		_, _ = w.submit(time.Duration(rand.Int64N(int64(whole))), "--run-root", "killed", "kill.ipynb")
	}
	if out, err := w.submit(0, "--run-root", "killed", "kill.ipynb"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkRoot(t, filepath.Join(w.dir, "killed"))
}

// checkRoot looks for files that killed submissions must not leave. A folder that was created but
// not yet locked stays for a day.
func checkRoot(t *testing.T, root string) {
	t.Helper()
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		dir := rundir.At(filepath.Join(root, entry.Name()))
		if !strings.HasPrefix(entry.Name(), ".") {
			if _, err := rundir.ReadManifest(dir); err != nil {
				t.Errorf("a run that is not whole: %v", err)
			}
			continue
		}
		left, err := os.ReadDir(dir.Path())
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range left {
			if !strings.HasPrefix(file.Name(), ".") && entry.Name() != filepath.Base(rundir.Store(root, os.Geteuid())) {
				t.Errorf("%s has %s", dir.Path(), file.Name())
			}
		}
	}
}
