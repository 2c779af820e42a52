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

	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/internal/tier"
	"gonbatch/tests/jupyter"
)

// foreign are folders of notebooks that were not written for gonbatch. rules/NAME.yaml has their
// rules, and rules/NAME.json how their cells end in GoNB; compare -record writes the latter.
var foreign = []struct {
	name string
	// module contains the folder, in the version of go.mod unless it names one. Without a module,
	// the folder is in this package's.
	module, folder string
	// checked is how many days it takes to check each notebook once.
	checked int
}{
	{name: "gonb", module: "github.com/janpfeifer/gonb", folder: "examples", checked: 2},
	{name: "rational", module: "github.com/gomlx/gomlx", folder: "ml/layers/rational", checked: 1},
	{name: "bsplines", module: "github.com/gomlx/bsplines@v0.2.0", checked: 1},
	{name: "users", folder: "users", checked: 3},
}

// comparedEvery is how many days it takes to run each notebook once on all sides.
const comparedEvery = 20

// TestForeign checks notebooks that were not written for gonbatch, and runs a few of them,
// different ones each day, with GoNB, with the kernel and as jobs. To run all of them on all sides:
//
//	go run ./tests/corpus/compare -rules tests/corpus/rules/users.yaml tests/corpus/users
func TestForeign(t *testing.T) {
	m := newTestMachine(t)
	today, part := time.Now().YearDay(), tier.Tries(1, 3)
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
				if every := part * f.checked; i%every == today%every {
					c, err := m.Check(t.Context(), folder, name, rules, recorded[name])
					wantSameAsGoNB(t, c, err)
				}
				if every := part * comparedEvery; i%every == today%every {
					c, err := m.Compare(t.Context(), folder, name, rules)
					wantSameAsGoNB(t, c, err)
					if diff := cmp.Diff(recorded[name].ok(), c.Statuses.ok()); diff != "" {
						// A cell that waits for a front end ends at the time limit, and others may
						// do so too.
						t.Logf("the cells that are ok in GoNB differ from the record (-recorded +got); compare -record updates it:\n%s", diff)
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

// download downloads a module, and those that the notebooks need, and returns a folder of the
// module. If it cannot, the test is skipped; with CI=true it fails.
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

// moduleDir downloads a module, in the version of go.mod unless it names one.
func moduleDir(ctx context.Context, module string) (string, error) {
	out, err := bounded.Output(exec.CommandContext(ctx, "go", "mod", "download", "-json", module))
	var found struct{ Dir, Error string }
	if json.Unmarshal(out, &found) == nil && found.Error != "" {
		err = errors.New(found.Error)
	}
	return found.Dir, err
}

// wantNotebooks checks that records and exceptions match the notebooks in the folder.
func wantNotebooks(t *testing.T, folder string, rules Rules, recorded map[string]Statuses) {
	t.Helper()
	names, err := FindNotebooks(folder)
	if err != nil {
		t.Fatal(err)
	}
	if known := slices.Sorted(maps.Keys(recorded)); !slices.Equal(names, known) {
		t.Errorf("%s has the notebooks %q, but the record has %q: see compare -record", folder, names, known)
	}
	for _, e := range rules.Exceptions {
		if _, ok := recorded[e.Notebook][e.Cell]; !ok {
			t.Errorf("there is no such cell: %s", e)
		}
	}
}

// wantSameAsGoNB checks that all sides do what GoNB does, apart from the exceptions.
func wantSameAsGoNB(t *testing.T, c Comparison, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Differences {
		t.Error(d)
	}
	for _, e := range c.Stale {
		t.Errorf("remove this exception, it no longer applies: %s", e)
	}
}
