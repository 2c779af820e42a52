package keep

import (
	"encoding/gob"
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// forest is a recursive type with values of many kinds.
type forest struct {
	Count  int
	Next   *forest
	At     time.Time
	Scores map[celsius]celsius
	Any    any
	Sums   [2]*big.Int
	hidden bool //nolint:unused // gob leaves it out
}

// leaves are the types from which random types are made: among them are those that encode
// themselves, in whole or in part.
var leaves = []reflect.Type{
	reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[uint8](), reflect.TypeFor[uintptr](), reflect.TypeFor[bool](),
	reflect.TypeFor[float32](), reflect.TypeFor[celsius](), reflect.TypeFor[complex128](), reflect.TypeFor[string](), reflect.TypeFor[any](),
	reflect.TypeFor[forest](), reflect.TypeFor[time.Time](), reflect.TypeFor[time.Duration](), reflect.TypeFor[netip.Addr](),
	reflect.TypeFor[big.Int](), reflect.TypeFor[*big.Int](), reflect.TypeFor[*time.Time](), reflect.TypeFor[*url.URL](),
	reflect.TypeFor[event](), reflect.TypeFor[money](), reflect.TypeFor[bookmark](), reflect.TypeFor[festival](), reflect.TypeFor[halfEvent](),
	reflect.TypeFor[ownEvent](), reflect.TypeFor[ownMoney](), reflect.TypeFor[written](), reflect.TypeFor[read](), reflect.TypeFor[mixed](),
}

func randomType(r *rand.Rand, depth int) reflect.Type {
	if depth == 0 || r.IntN(4) == 0 {
		return leaves[r.IntN(len(leaves))]
	}
	switch r.IntN(5) {
	case 0:
		return reflect.PointerTo(randomType(r, depth-1))
	case 1:
		return reflect.SliceOf(randomType(r, depth-1))
	case 2:
		return reflect.ArrayOf(r.IntN(3), randomType(r, depth-1))
	case 3:
		keys := []reflect.Type{reflect.TypeFor[int](), reflect.TypeFor[string](), reflect.TypeFor[celsius](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[[2]bool]()}
		return reflect.MapOf(keys[r.IntN(len(keys))], randomType(r, depth-1))
	}
	var fields []reflect.StructField
	for i := range 1 + r.IntN(3) {
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: randomType(r, depth-1)})
	}
	return reflect.StructOf(fields)
}

// fill sets a value to a random one, with many zeros.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	if r.IntN(5) == 0 || depth > 7 || !v.CanSet() {
		return
	}
	switch p := v.Addr().Interface().(type) {
	case *time.Time:
		*p = time.Unix(int64(r.IntN(3)), 0).UTC()
		return
	case *big.Int:
		p.SetInt64(int64(r.IntN(3)))
		return
	case *netip.Addr:
		*p = netip.AddrFrom4([4]byte{1, 2, 3, byte(r.IntN(3))})
		return
	case *ownEvent:
		p.Name = strings.Repeat("a", r.IntN(3))
		return
	case *ownMoney:
		p.Currency = strings.Repeat("a", r.IntN(3))
		return
	case *url.URL:
		p.Host = strings.Repeat("a", r.IntN(3))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), r.IntN(3), 3))
		}
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, depth+1)
			fill(r, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth+1)
		}
	case reflect.Interface:
		all := []any{0, 1, "", "x", 2.5, false, []int{1}, []byte{}, forest{Count: r.IntN(2)}, time.Unix(7, 0).UTC(), (*int)(nil), &event{Name: "a"}, *big.NewInt(1)}
		v.Set(reflect.ValueOf(all[r.IntN(len(all))]))
	case reflect.String:
		v.SetString(strings.Repeat("a", r.IntN(3)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Complex128:
		v.SetComplex(complex(0, float64(r.IntN(4))))
	default:
		v.Set(reflect.ValueOf(r.IntN(4)).Convert(v.Type()))
	}
}

// refusal matches an error that says which part of x can't be kept.
var refusal = regexp.MustCompile(`^%keep x: (the field )?x[ .\[]`)

// TestRandomTypes: a value of a random type comes back as it was, or is refused with the path of a
// part, also if another value of the type was kept before. A list or map without elements may
// become nil.
func TestRandomTypes(t *testing.T) {
	for _, value := range []any{forest{}, time.Time{}, &event{}, &big.Int{}} {
		gob.Register(value)
	}
	_, errs := session(t)
	equal := cmp.Options{
		cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Addr{}), cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.Comparer(func(a, b big.Int) bool { return a.Cmp(&b) == 0 }),
	}
	same, refused := 0, 0
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		typ := randomType(r, 3)
		for step := range 2 {
			before, after := reflect.New(typ), reflect.New(typ)
			fill(r, before.Elem(), 0)
			_ = os.Remove(errs)
			Vars{"x": before.Interface()}.Save()
			if text, err := os.ReadFile(errs); err == nil {
				if !refusal.Match(text) {
					t.Errorf("seed %d, step %d, %s: %s", seed, step, typ, text)
				}
				refused++
				continue
			}
			same++
			Vars{"x": after.Interface()}.Load(nil)
			if u := program.unread["x"]; u != nil {
				t.Errorf("seed %d, step %d, %s: not loaded: %v", seed, step, typ, u.err)
			} else if diff := cmp.Diff(before.Interface(), after.Interface(), equal); diff != "" {
				t.Errorf("seed %d, step %d, %s came back as another: %s", seed, step, typ, diff)
			}
		}
	}
	program.unread = nil
	if same < 150 || refused < 150 {
		t.Errorf("%d values came back, %d were refused: too few to say something", same, refused)
	}
}
