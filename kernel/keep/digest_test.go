package keep

import (
	"encoding/gob"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

// tree is a type whose values may differ only in which pointers are nil.
type tree struct {
	Left  *tree
	Value int
	Right *tree
	Any   any
	Box   *struct{ Pointer *int }
}

// randomTree returns a random tree that has the numbers from one up to another in order.
func randomTree(r *rand.Rand, from, to int) *tree {
	if from > to {
		return nil
	}
	root := from + r.IntN(to-from+1)
	n := &tree{Left: randomTree(r, from, root-1), Value: root, Right: randomTree(r, root+1, to)}
	switch r.IntN(8) {
	case 0:
		n.Any = *randomTree(r, 1, 2)
	case 1:
		n.Any = []*tree{randomTree(r, 1, 2)}
	case 2:
		n.Any = map[string]*tree{"a": randomTree(r, 1, 2)}
	case 3:
		n.Box = &struct{ Pointer *int }{[]*int{nil, &n.Value}[r.IntN(2)]}
	}
	return n
}

// TestEachChangeIsKept keeps random values, each of which may differ little from the one before.
func TestEachChangeIsKept(t *testing.T) {
	for _, value := range []any{tree{}, []*tree{}, map[string]*tree{}} {
		gob.Register(value)
	}
	_, errs := session(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 300 {
		var x, next *tree
		vars := Vars{"x": &x}
		vars.Load(nil)
		x = randomTree(r, 1, 1+r.IntN(3))
		vars.Save()
		if (Vars{"x": &next}).Load(nil); !reflect.DeepEqual(next, x) {
			t.Fatalf("value %d was lost", i)
		}
	}
	if text, err := os.ReadFile(errs); err == nil {
		t.Errorf("%s", text)
	}
}

// TestMapStays: if a map has not changed, its file stays as it is, so that a training run that
// reads it can resume; any change is written.
func TestMapStays(t *testing.T) {
	type entry struct {
		Counts map[string]int
		When   time.Time
		Any    any
	}
	gob.Register(map[string]int{})
	dir, _ := session(t)
	path := rundir.KeptValue(dir, "x", 0)
	x := map[string]*entry{}
	for i := range 50 {
		x[fmt.Sprint("word", i)] = &entry{map[string]int{"a": i, "b": 1, "c": 2, "d": 3}, time.Unix(int64(i), 0), map[string]int{"e": i, "f": 1}}
	}
	vars := Vars{"x": &x}
	vars.Save()
	changes := map[string]func(){
		"an entry":           func() { x["new"] = &entry{Counts: map[string]int{"a": 1}} },
		"one less":           func() { delete(x, "word3") },
		"a count":            func() { x["word4"].Counts["a"] = -1 },
		"a time":             func() { x["word5"].When = time.Unix(9, 9) },
		"a value within any": func() { x["word6"].Any.(map[string]int)["e"] = 99 },
		"another type":       func() { x["word7"].Any = 1 },
	}
	for name, change := range changes {
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		vars.Save()
		if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
			t.Fatalf("the same value was written again, %v", err)
		}
		change()
		vars.Save()
		if after, err := os.Stat(path); err != nil || os.SameFile(before, after) {
			t.Errorf("%s was not written, %v", name, err)
		}
		var got map[string]*entry
		Vars{"x": &got}.Load(nil)
		if digest(reflect.ValueOf(got)) != digest(reflect.ValueOf(x)) {
			t.Errorf("%s: %v is not what was saved", name, got)
		}
	}
}

type leaf struct {
	A int8
	B string
	C []float32
	D map[int]bool
	E *uint16
	F complex64
}

func (l leaf) String() string { return fmt.Sprintf("%d %q %v %v %d %v", l.A, l.B, l.C, l.D, *l.E, l.F) }

// TestDigests: random values have the same digest after gob, and different values have different
// digests.
func TestDigests(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	random := func() map[string][]leaf {
		m := map[string][]leaf{}
		for range 1 + r.IntN(4) {
			list := []leaf{}
			for range 1 + r.IntN(3) {
				n := uint16(1 + r.IntN(2))
				list = append(list, leaf{int8(r.IntN(2)), "xy"[r.IntN(2):], []float32{float32(math.NaN()), float32(r.IntN(2))}[r.IntN(2):], map[int]bool{r.IntN(3): true}, &n, complex(float32(r.IntN(2)), 1)})
			}
			m["abc"[r.IntN(3):]] = list
		}
		return m
	}
	seen, digests := map[string]string{}, map[string]string{}
	for range 300 {
		value := random()
		session(t)
		Vars{"x": &value}.Save()
		var loaded map[string][]leaf
		Vars{"x": &loaded}.Load(nil)
		d := digest(reflect.ValueOf(value))
		if d != digest(reflect.ValueOf(loaded)) {
			t.Fatalf("%v has another digest when it is loaded as %v", value, loaded)
		}
		text := fmt.Sprint(value)
		if before, ok := seen[d]; ok && before != text {
			t.Fatalf("%s and %s have the same digest", before, text)
		}
		seen[d] = text
		if before, ok := digests[text]; ok && before != d {
			t.Fatalf("%s has two digests", text)
		}
		digests[text] = d
	}
}

// TestAnotherTypeOfTheName: a value of another type with the same name and fields is a change.
func TestAnotherTypeOfTheName(t *testing.T) {
	first := func() any { type local struct{ A int }; gob.RegisterName("first local", local{}); return local{1} }()
	second := func() any { type local struct{ A int }; gob.RegisterName("second local", local{}); return local{1} }()
	session(t)
	var x any
	for _, want := range []any{first, second, first} {
		x = want
		Vars{"x": &x}.Save()
		x = nil
		if (Vars{"x": &x}).Load(nil); !reflect.DeepEqual(x, want) {
			t.Errorf("loaded %#v, want %#v", x, want)
		}
	}
}
