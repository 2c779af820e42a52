package data_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data"
)

// knowing is a dataset of images that implements all optional interfaces.
type knowing struct {
	data.Dataset
	source string
	among  *[]int // The examples that a wrapper has asked for.
}

func (k knowing) Describe() string    { return "decoded by " + k.source }
func (k knowing) Fingerprint() string { return k.source }
func (k knowing) Classes() []string   { return []string{"cat", "dog"} }

func (k knowing) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	*k.among = append(*k.among, epoch)
	return k.Batch(indices)
}

// unknown is a dataset without optional interfaces.
type unknown struct{ data.Dataset }

// newKnowing returns n images of 2x2x1, in two classes.
func newKnowing(t *testing.T, source string, n int) knowing {
	t.Helper()
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(i % 2)
	}
	ds, err := data.Tensors("known", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, 4*n), n, 2, 2, 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(labels, n, 1)})
	if err != nil {
		t.Fatal(err)
	}
	return knowing{ds, source, new([]int)}
}

// wrappers are all functions that wrap a dataset, by a name. The datasets of a slice have the same
// name and number of examples, but other examples.
var wrappers = map[string][]func(data.Dataset) data.Dataset{
	"Range": {
		func(ds data.Dataset) data.Dataset { return data.Range(ds, 0, 4) },
		func(ds data.Dataset) data.Dataset { return data.Range(ds, 4, 8) },
	},
	"First": {func(ds data.Dataset) data.Dataset { return data.First(ds, 3) }},
	"Split": {
		func(ds data.Dataset) data.Dataset { return split(ds, 2, 0.2, 0.4, 0.4) },
		func(ds data.Dataset) data.Dataset { return split(ds, 2, 0.3, 0.4, 0.3) },
	},
	"Serial": {data.Serial},
	"Augment": {
		func(ds data.Dataset) data.Dataset { return data.Augment(ds, 1) },
		func(ds data.Dataset) data.Dataset { return data.Augment(ds, 2) },
		func(ds data.Dataset) data.Dataset {
			return data.Augment(ds, 1, data.Normalize([]float32{0.5}, []float32{1}))
		},
		func(ds data.Dataset) data.Dataset {
			return data.Augment(ds, 1, data.Normalize([]float32{0.4}, []float32{1}))
		},
		func(ds data.Dataset) data.Dataset { return data.Augment(ds, 1, data.Normalize(nil, nil)) },
	},
	"Resize": {
		func(ds data.Dataset) data.Dataset { return data.Resize(ds, 2, 3) },
		func(ds data.Dataset) data.Dataset { return data.Resize(ds, 3, 2) },
		func(ds data.Dataset) data.Dataset { return data.Resize(ds, 1, 2) },
		func(ds data.Dataset) data.Dataset { return data.CenterCrop(ds, 1, 2) },
	},
	"MixUp": {
		func(ds data.Dataset) data.Dataset { return data.MixUp(ds, 1, 0.2, 2) },
		func(ds data.Dataset) data.Dataset { return data.MixUp(ds, 2, 0.2, 2) },
		func(ds data.Dataset) data.Dataset { return data.MixUp(ds, 1, 0.3, 2) },
		func(ds data.Dataset) data.Dataset { return data.MixUp(ds, 1, 0.2, 3) },
	},
}

// split returns the second part.
func split(ds data.Dataset, seed uint64, fractions ...float64) data.Dataset {
	parts, err := data.Split(ds, seed, fractions...)
	if err != nil {
		panic(err)
	}
	return parts[1]
}

// forwarded says, of each interface that a dataset may implement, what is wrong with a wrapper of
// ds.
var forwarded = map[string]func(wrapper data.Dataset, ds knowing) string{
	"Described": func(wrapper data.Dataset, ds knowing) string { return unlike(data.Describe(wrapper), ds.Describe()) },
	"Classed":   func(wrapper data.Dataset, ds knowing) string { return unlike(data.Classes(wrapper), ds.Classes()) },
	"Fingerprinted": func(wrapper data.Dataset, _ knowing) string {
		return unlike(data.Fingerprint(wrapper) != "", true)
	},
	"Epochs": func(wrapper data.Dataset, ds knowing) string {
		*ds.among = nil
		_, _, err := data.EpochBatch(wrapper, 7, []int{1})
		return unlike(fmt.Sprint(*ds.among, err), "[7] <nil>")
	},
	"narrowed": func(wrapper data.Dataset, _ knowing) string {
		_, ok := wrapper.(data.Narrowed)
		return unlike(ok, true)
	},
}

func unlike[T any](got, want T) string {
	if got, want := fmt.Sprintf("%#v", got), fmt.Sprintf("%#v", want); got != want {
		return fmt.Sprintf("got %s, want %s", got, want)
	}
	return ""
}

// TestWrappers: each wrapper forwards each interface.
func TestWrappers(t *testing.T) {
	for name, all := range wrappers {
		for interfaceName, wrong := range forwarded {
			ds := newKnowing(t, "a", 10)
			if text := wrong(all[0](ds), ds); text != "" {
				t.Errorf("%s doesn't forward %s: %s", name, interfaceName, text)
			}
		}
	}
}

// TestWrapperFingerprints: a wrapper's fingerprint changes with the dataset and with what the
// wrapper does, also if the dataset has none, and stays the same otherwise.
func TestWrapperFingerprints(t *testing.T) {
	for name, all := range wrappers {
		seen := map[string]string{}
		for source := range 2 {
			for i, wrap := range all {
				ds := newKnowing(t, fmt.Sprint(source), 10)
				got, what := data.Fingerprint(wrap(ds)), fmt.Sprintf("%d of source %d", i, source)
				if other, ok := seen[got]; ok {
					t.Errorf("%s: %s has the fingerprint of %s, %q", name, what, other, got)
				}
				seen[got] = what
				if again := data.Fingerprint(wrap(ds)); again != got {
					t.Errorf("%s: %s has the fingerprints %q and %q", name, what, got, again)
				}
			}
		}
		for i, wrap := range all {
			if got := data.Fingerprint(wrap(unknown{newKnowing(t, "a", 10)})); i > 0 && seen[got] != "" {
				t.Errorf("%s: %d without a source has the fingerprint of %s", name, i, seen[got])
			} else if seen[got] = fmt.Sprint(i); len(all) > 1 && got == "" {
				t.Errorf("%s: %d without a source has no fingerprint", name, i)
			}
		}
	}
}

// TestLeafFingerprints: the fingerprint of a dataset of its own examples changes with them.
func TestLeafFingerprints(t *testing.T) {
	images := func(change func(*data.ImagesConfig)) data.Dataset {
		c := small()
		c.Pixels, c.Labels = slices.Clone(c.Pixels), slices.Clone(c.Labels)
		change(&c)
		ds, err := data.NewImages(c)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	memory := func(values ...float32) data.Dataset {
		ds, err := data.Tensors("x", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(values, len(values), 1)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	windows := func(context int, tokens ...int32) data.Dataset {
		ds, err := data.Tokens("x", tokens, context)
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	long := make([]int32, 200_000)
	other := slices.Clone(long)
	other[len(other)-1] = 1
	all := map[string]func() data.Dataset{
		"images":  func() data.Dataset { return images(func(*data.ImagesConfig) {}) },
		"a pixel": func() data.Dataset { return images(func(c *data.ImagesConfig) { c.Pixels[0]++ }) },
		"a label": func() data.Dataset { return images(func(c *data.ImagesConfig) { c.Labels[0] = (c.Labels[0] + 1) % 3 }) },
		"normalized": func() data.Dataset {
			return images(func(c *data.ImagesConfig) { c.Mean = make([]float32, c.Channels) })
		},
		"tensors":        func() data.Dataset { return memory(1, 2) },
		"other tensors":  func() data.Dataset { return memory(1, 3) },
		"windows":        func() data.Dataset { return windows(1, 1, 2, 3) },
		"a token":        func() data.Dataset { return windows(1, 1, 2, 4) },
		"a context":      func() data.Dataset { return windows(2, 1, 2, 3) },
		"long windows":   func() data.Dataset { return windows(5, long...) },
		"the last token": func() data.Dataset { return windows(5, other...) },
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		got := data.Fingerprint(all[name]())
		if seen[got] != "" || got == "" || got != data.Fingerprint(all[name]()) {
			t.Errorf("%s: %q, which %q has", name, got, seen[got])
		}
		seen[got] = name
	}
}

// TestNoWrapperIsForgotten: every type of package data that has another dataset embeds wrapped and
// is in the tests above, and so is every interface. Packages below it have no wrappers.
func TestNoWrapperIsForgotten(t *testing.T) {
	tested := map[string]bool{}
	for _, all := range wrappers {
		tested[strings.TrimPrefix(fmt.Sprintf("%T", all[0](newKnowing(t, "a", 10))), "data.")] = true
	}
	paths, err := filepath.Glob("*.go")
	below, belowErr := filepath.Glob("*/*.go")
	if err != nil || belowErr != nil || len(paths) == 0 || len(below) == 0 {
		t.Fatal(paths, err, below, belowErr)
	}
	for _, path := range append(paths, below...) {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok {
				return true
			}
			name := spec.Name.Name
			has := embedded(spec.Type)
			switch spec.Type.(type) {
			case *ast.InterfaceType:
				if slices.Contains(has, "Dataset") && forwarded[name] == nil {
					t.Errorf("%s: the interface %s is not in the map forwarded", path, name)
				}
			case *ast.StructType:
				if slices.Contains(has, "Dataset") && name != "wrapped" {
					t.Errorf("%s: %s embeds Dataset instead of wrapped", path, name)
				}
				if slices.Contains(has, "wrapped") && !tested[name] {
					t.Errorf("%s: %s is not made by the map wrappers", path, name)
				}
			}
			return true
		})
	}
}

// embedded returns the names of the types that a type embeds, without their packages.
func embedded(expression ast.Expr) (names []string) {
	var fields *ast.FieldList
	switch kind := expression.(type) {
	case *ast.StructType:
		fields = kind.Fields
	case *ast.InterfaceType:
		fields = kind.Methods
	default:
		return nil
	}
	for _, field := range fields.List {
		if len(field.Names) > 0 {
			continue
		}
		switch kind := field.Type.(type) {
		case *ast.Ident:
			names = append(names, kind.Name)
		case *ast.SelectorExpr:
			names = append(names, kind.Sel.Name)
		}
	}
	return names
}

// TestSerialKeepsPartsApart: the parts of a MixUp below a Serial are not mixed with one another.
func TestSerialKeepsPartsApart(t *testing.T) {
	const n = 20
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(min(i/10, 1)) // The second half has ones.
	}
	ds, err := data.Tensors("halves", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(x, n, 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]int32, n), n, 1)})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	part := data.Range(data.Serial(data.MixUp(ds, 3, 1, 1)), 0, 10)
	for range 100 {
		if got := pixelsOf(t, part, random.IntN(9), random.IntN(10)); got[0] != 0 {
			t.Fatalf("an example of the first part is mixed with one of the second: %v", got)
		}
	}
}
