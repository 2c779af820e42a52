package gomlx_test

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/keep"
	_ "gonbatch/kernel/keep/gomlx"
)

// keeps saves the variable x as one program does, and loads it as the next one does.
func keeps(t *testing.T, before, after any) (said string) {
	t.Helper()
	errs := filepath.Join(t.TempDir(), "errors")
	t.Setenv(rundir.EnvKeepDir, t.TempDir())
	t.Setenv(rundir.EnvKeepErrors, errs)
	keep.Vars{"x": before}.Save()
	keep.Vars{"x": after}.Load(nil)
	text, _ := os.ReadFile(errs)
	return string(text)
}

func TestTensors(t *testing.T) {
	one := tensors.FromValue([][]float32{{1, 2}, {3, 4}})
	none := tensors.FromShape(shapes.Make(dtypes.Int64, 0, 3))
	tests := []struct {
		name string
		list []*tensors.Tensor
	}{
		{"none", []*tensors.Tensor{}},
		{"one", []*tensors.Tensor{one}},
		{"nil between others", []*tensors.Tensor{one, nil, tensors.FromValue(true)}},
		{"empty", []*tensors.Tensor{none}},
		{"twelve", []*tensors.Tensor{one, one, one, one, one, one, one, one, one, one, tensors.FromValue(int8(10)), tensors.FromValue(11.0)}},
	}
	same := func(t *testing.T, got, want *tensors.Tensor) {
		t.Helper()
		if (got == nil) != (want == nil) || got != nil && (!got.Shape().Equal(want.Shape()) || !got.Equal(want)) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var list []*tensors.Tensor
			byName, named := map[string]*tensors.Tensor{}, map[string]*tensors.Tensor(nil)
			for i, x := range tt.list {
				byName[strings.Repeat("ä/", i)+"w"] = x
			}
			if said := keeps(t, &tt.list, &list) + keeps(t, &byName, &named); said != "" {
				t.Fatal(said)
			}
			if list == nil || len(list) != len(tt.list) || len(named) != len(byName) {
				t.Fatalf("%d in the list, %d by name, want %d", len(list), len(named), len(tt.list))
			}
			for i, x := range tt.list {
				same(t, list[i], x)
				same(t, named[strings.Repeat("ä/", i)+"w"], x)
				single := one
				if said := keeps(t, &x, &single); said != "" {
					t.Fatal(said)
				}
				same(t, single, x)
			}
		})
	}
}

// TestStore keeps a store through a program that does not use it.
func TestStore(t *testing.T) {
	store := model.NewStore()
	store.RootScope().In("dense").VariableWithValue("weights", [][]float32{{1, 2}})
	store.RootScope().In("norm").VariableWithValue("mean", []float64{3}).SetTrainable(false)
	var unused, last *model.Store
	if said := keeps(t, &store, &unused) + keeps(t, &unused, &last); said != "" {
		t.Fatal(said)
	}
	for path, want := range map[string]any{"/dense/weights": [][]float32{{1, 2}}, "/norm/mean": []float64{3}} {
		v := last.GetVariable(path)
		if v == nil {
			t.Fatalf("the store has no %s", path)
		}
		value, err := v.Value()
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := tensors.FromAnyValue(want)
		if err != nil {
			t.Fatal(err)
		}
		if !value.Equal(wanted) {
			t.Errorf("%s is %v, want %v", path, value, want)
		}
	}
	var nothing *model.Store
	if said := keeps(t, &nothing, &last); said != "" || last != nil {
		t.Errorf("no store became %v: %s", last, said)
	}
}

// TestParams: hyperparameters come back with their types, in their scopes.
func TestParams(t *testing.T) {
	store := model.NewStore()
	want := map[string]any{
		"/learning_rate": 0.5, "/layers": 3, "/dense/activation": "relu", "/dense/layer 1/dropout": float32(0.25), "/debug": true,
		"/sizes": []int{64, 32}, "/names": []string{"a", "b"}, "/limit": math.Inf(1), "/zero": 0, "/none": "", "/nothing": nil,
	}
	store.SetParams(want)
	var last *model.Store
	if said := keeps(t, &store, &last); said != "" {
		t.Fatal(said)
	}
	got := maps.Collect(last.IterParams())
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v came back as %v", want, got)
	}
	if rate := model.GetParamOr(last.RootScope().In("dense"), "learning_rate", 0.0); rate != 0.5 {
		t.Errorf("a scope below has the learning rate %g, want the root's 0.5", rate)
	}
	store.SetParam("/dense/init", func() {})
	if said := keeps(t, &store, &last); !strings.Contains(said, "the hyperparameter /dense/init is a func(), which can't be kept") {
		t.Errorf("said %q", said)
	}
}

func TestRefused(t *testing.T) {
	x := struct{ Weights *tensors.Tensor }{tensors.FromValue(1.0)}
	if said := keeps(t, &x, &x); !strings.Contains(said, "x.Weights is a *tensors.Tensor, which can be kept only in a variable of its own") {
		t.Errorf("said %q", said)
	}
}

// TestUnfitTensors: an error names the user's tensor, and says if it has been freed.
func TestUnfitTensors(t *testing.T) {
	good, freed, wide := tensors.FromValue(1.0), tensors.FromValue(2.0), tensors.FromValue(complex(1, 2))
	if err := freed.FinalizeAll(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		value any
		want  string
	}{
		{"freed", &freed, "%keep x: the tensor has been freed (by FinalizeAll)"},
		{"complex", &wide, "%keep x: the tensor is (Complex128), and safetensors files can't hold Complex128"},
		{"in a list", &[]*tensors.Tensor{good, nil, freed}, "%keep x: the tensor [2] has been freed"},
		{"in a map", &map[string]*tensors.Tensor{"a": good, "b/c": freed}, `%keep x: the tensor ["b/c"] has been freed`},
	} {
		if said := keeps(t, tt.value, tt.value); !strings.HasPrefix(said, tt.want) {
			t.Errorf("%s: said %q, want %q", tt.name, said, tt.want)
		}
	}
}

// TestReadingChangesNothing: the file of a store stays the same whether a program uses none, some
// or all of its variables. A training run compares its hash.
func TestReadingChangesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(rundir.EnvKeepDir, dir)
	store := model.NewStore()
	names := []string{"a", "b", "c"}
	for i, name := range names {
		store.RootScope().In("%s", name).VariableWithValue("weights", []float32{float32(i), 2})
	}
	vars := keep.Vars{"x": &store}
	vars.Save()
	file := rundir.KeptValue(dir, "x", 0)
	first, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for used := range len(names) + 1 {
		store = model.NewStore()
		vars.Load(nil)
		for _, name := range names[:used] {
			if v := store.GetVariable("/" + name + "/weights"); v == nil || !v.HasValue() {
				t.Fatalf("%s is missing", name)
			}
		}
		vars.Save()
		if now, err := os.ReadFile(file); err != nil || !bytes.Equal(now, first) {
			t.Errorf("%d variables used: %q, before %q, %v", used, now, first, err)
		}
	}
}

// BenchmarkStore keeps a store of 100 MB: it measures the additional time at a cell's beginning and
// end.
func BenchmarkStore(b *testing.B) {
	b.Setenv(rundir.EnvKeepDir, b.TempDir())
	store := model.NewStore()
	for i := range 25 {
		store.RootScope().In("layer %d", i).VariableWithValue("weights", tensors.FromShape(shapes.Make(dtypes.Float32, 1000, 1000)))
	}
	vars := keep.Vars{"store": &store}
	vars.Save()
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			vars.Load(nil)
		}
	})
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			vars.Save()
		}
	})
	b.Run("load, use and save", func(b *testing.B) {
		for b.Loop() {
			vars.Load(nil)
			for i := range 25 {
				if v := store.GetVariable(fmt.Sprintf("/layer %d/weights", i)); !v.HasValue() {
					b.Fatal("no value")
				}
			}
			vars.Save()
		}
	})
}
