package corpus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/internal/machine"
	"gonbatch/tests/jupyter"
)

// foreign are folders of notebooks that were not written for gonbatch. rules/NAME.yaml has their
// rules, and rules/NAME.json how their cells end in GoNB; compare -record writes it.
var foreign = []struct {
	name string
	// module has the folder, in the version of go.mod if it names none. Without a module, the
	// folder is in this package's.
	module, folder string
	// checked is how many days it takes until each notebook was checked.
	checked int
}{
	{name: "gonb", module: "github.com/janpfeifer/gonb", folder: "examples", checked: 2},
	{name: "rational", module: "github.com/gomlx/gomlx", folder: "ml/layers/rational", checked: 1},
	{name: "bsplines", module: "github.com/gomlx/bsplines@v0.2.0", checked: 1},
	{name: "users", folder: "users", checked: 3},
}

// comparedEvery is how many days it takes until each notebook ran on all sides.
const comparedEvery = 20

// TestForeign checks notebooks that were not written for gonbatch, and runs some of them by GoNB,
// by the kernel and as jobs, others each day.
//
//	go run ./tests/corpus/compare -rules tests/corpus/rules/users.yaml tests/corpus/users    # all, on all sides
func TestForeign(t *testing.T) {
	m := newTestMachine(t)
	today := time.Now().YearDay()
	for _, f := range foreign {
		rules, err := ReadRules(filepath.Join("rules", f.name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		recorded, err := ReadStatuses(filepath.Join("rules", f.name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		folder := download(t, f.module, f.folder, rules)
		wantNotebooks(t, folder, rules, recorded)
		for i, name := range slices.Sorted(maps.Keys(recorded)) {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				if i%f.checked == today%f.checked {
					c, err := m.Check(t.Context(), folder, name, rules, recorded[name])
					wantSameAsGoNB(t, c, err)
				}
				if i%comparedEvery == today%comparedEvery {
					c, err := m.Compare(t.Context(), folder, name, rules)
					wantSameAsGoNB(t, c, err)
					if diff := cmp.Diff(recorded[name].ok(), c.Statuses.ok()); diff != "" {
						// What waits for a front end ends by the time limit, and so may others.
						t.Logf("other cells than recorded are ok in GoNB (-recorded +got); compare -record records them:\n%s", diff)
					}
				}
			})
		}
	}
}

// newTestMachine installs the kernels.
func newTestMachine(t *testing.T) *Machine {
	t.Helper()
	program, err := submitBinary()
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{Python: jupyter.Python(t), Root: rootDir(t), Program: program, Dir: t.TempDir(), Getenv: os.Getenv, Environ: os.Environ()}
	if err := m.Install(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// download gives a folder of a module, which it downloads with the modules that its notebooks need.
// Where that is impossible the test is skipped, but with CI=true it fails.
func download(t *testing.T, module, folder string, rules Rules) string {
	t.Helper()
	err := Download(t.Context(), rules.Modules)
	dir := "."
	if module != "" && err == nil {
		dir, err = moduleDir(t.Context(), module)
	}
	if err != nil {
		machine.Lacks(t, fmt.Sprintf("the notebooks need modules that can't be downloaded: %v", err))
	}
	folder, err = filepath.Abs(filepath.Join(dir, filepath.FromSlash(folder)))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// moduleDir downloads a module, in the version of go.mod if it names none.
func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(out, &found) == nil && found.Error != "" {
		err = errors.New(found.Error)
	}
	return found.Dir, err
}

// wantNotebooks checks that the records and the exceptions are of notebooks that are there.
func wantNotebooks(t *testing.T, folder string, rules Rules, recorded map[string]Statuses) {
	t.Helper()
	names, err := FindNotebooks(folder)
	if err != nil {
		t.Fatal(err)
	}
	if known := slices.Sorted(maps.Keys(recorded)); !slices.Equal(names, known) {
		t.Errorf("%s has the notebooks %q, and recorded are %q: see compare -record", folder, names, known)
	}
	for _, e := range rules.Exceptions {
		if _, ok := recorded[e.Notebook][e.Cell]; !ok {
			t.Errorf("there is no such cell: %s", e)
		}
	}
}

// wantSameAsGoNB checks that all sides do what GoNB does, but for the exceptions.
func wantSameAsGoNB(t *testing.T, c Comparison, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Differences {
		t.Error(d)
	}
	for _, e := range c.Stale {
		t.Errorf("no exception any more, remove it: %s", e)
	}
}
