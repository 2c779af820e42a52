package kernel

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/build"
)

// TestTraining: a training run is a new one if its inputs have changed, but not if only the
// training itself has changed them.
func TestTraining(t *testing.T) {
	cellDir, keepDir, store := t.TempDir(), t.TempDir(), t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	note, err := json.Marshal(build.Training{Place: filepath.Join(store, "code"), Uses: []string{"data", "main", "weights"}})
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(cellDir, "training"), string(note))
	keep := func(name, text string) { t.Helper(); write(rundir.KeptValue(keepDir, name, 0), text) }
	env, args := environment{rundir.EnvKeepDir + "=" + keepDir}, []string{}
	// run trains, and keeps weights if they are given.
	run := func(weights string) string {
		t.Helper()
		training := newTraining(append([]string{"/x/cell.run"}, args...), cellDir, env)
		variable := training.variable(io.Discard)
		place := strings.TrimPrefix(variable[0], rundir.EnvCheckpoints+"=")
		if err := os.MkdirAll(place, 0o755); err != nil {
			t.Fatal(err)
		}
		if weights != "" {
			keep("weights", weights)
		}
		training.note(variable)
		return place
	}
	places := map[string]string{}
	expect := func(what, place string, fresh bool) {
		t.Helper()
		if before, known := places[place]; known == fresh {
			t.Errorf("%s: %s, fresh: %v (as %s), want %v", what, place, !known, before, fresh)
		}
		places[place] = what
	}
	expect("the first", run("trained"), true)
	expect("the same again", run("trained"), false)
	keep("other", "1")
	expect("with a value that it does not read", run("trained"), false)
	keep("data", "1")
	expect("with a value that it reads", run("more"), true)
	expect("again", run("more"), false)
	keep("weights", "new")
	expect("with new weights", run("trained"), true)
	expect("interrupted without saving", run(""), false)
	write(filepath.Join(cellDir, "environ"), "RATE")
	expect("with a variable", run("trained"), true)
	env.set("RATE", "2")
	expect("with another value of it", run("trained"), true)
	args = []string{"-epochs", "3"}
	expect("with arguments", run("trained"), true)
	if newTraining([]string{"ls"}, cellDir, env).variable(io.Discard) != nil {
		t.Error("another command has a place")
	}
}

// TestNoCheckpoints: if no checkpoints can be written, a training runs with a warning.
func TestNoCheckpoints(t *testing.T) {
	for _, store := range []string{"/proc/nope", "/dev/null/x"} {
		for _, trains := range []bool{true, false} {
			var warned bytes.Buffer
			got := (&training{base: store + "/code-1", trains: trains}).variable(&warned)
			if len(got) != 1 || got[0] != rundir.EnvCheckpoints+"=" {
				t.Errorf("%s: %q, want no place", store, got)
			}
			if said := strings.Contains(warned.String(), "no checkpoints") && strings.Contains(warned.String(), rundir.EnvCheckpoints); said != trains {
				t.Errorf("%s: a training run: %v, warned %q", store, trains, warned.String())
			}
		}
	}
}
