package keep

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
)

// TestRenamedField: a program whose type lacks a field of the kept value says so, as long as the
// value has the field.
func TestRenamedField(t *testing.T) {
	type inner struct{ A, B int }
	type before struct {
		Name  string
		Parts map[string][]*inner
		Next  *before
	}
	type renamed struct{ A, Bias int }
	type after struct {
		Label string
		Parts map[string][]*renamed
		Next  *after
	}
	dir, _ := session(t)
	x := before{"a", map[string][]*inner{"b": {{1, 2}}}, nil}
	Vars{"x": &x}.Save()
	run := func(change func(x *after)) string {
		var x after
		vars := Vars{"x": &x}
		return stderrOf(t, func() {
			vars.Load(nil)
			save := vars.Begin()
			change(&x)
			save()
		})
	}
	const want = "%keep x: the kept value has x.Name, x.Parts[...][...].B, which the type of x lacks: this part is lost when x changes\n"
	for range 2 {
		if said := run(func(*after) {}); said != want {
			t.Errorf("said %q, want %q", said, want)
		}
	}
	var y before
	if (Vars{"x": &y}).Load(nil); !reflect.DeepEqual(y, x) {
		t.Errorf("unchanged, %+v became %+v", x, y)
	}
	run(func(x *after) { x.Label = "b" })
	if said := run(func(*after) {}); said != "" {
		t.Errorf("after a change it said %q", said)
	}

	// A file without the list, as of an earlier version.
	file := rundir.KeptValue(dir, "x", 0)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	without, _, ok := strings.Cut(string(text), fieldsMark)
	if !ok {
		t.Fatalf("no fields in %q", text)
	}
	if err := os.WriteFile(file, []byte(without), 0o600); err != nil {
		t.Fatal(err)
	}
	if (Vars{"x": &y}).Load(nil); y.Parts["b"][0].A != 1 {
		t.Errorf("loaded %+v", y)
	}
	if said := run(func(*after) {}); said != "" {
		t.Errorf("without a list it said %q", said)
	}
}

// TestManyFields: the fields of a type with very many are not listed.
func TestManyFields(t *testing.T) {
	typ := reflect.TypeFor[struct{ A, B, C, D int }]()
	for range 5 {
		typ = reflect.StructOf([]reflect.StructField{{Name: "A", Type: typ}, {Name: "B", Type: reflect.SliceOf(typ)}, {Name: "C", Type: reflect.PointerTo(typ)}})
	}
	if paths := fieldsOf(typ); paths != nil {
		t.Errorf("%d fields", len(paths))
	}
}
