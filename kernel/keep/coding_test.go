package keep

import (
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gonbatch/internal/rundir"
)

// event and the types below have the methods of an embedded type that encodes itself.
type event struct {
	time.Time
	Name string
}

type party event

type money struct {
	Currency string
	big.Int
}

type bookmark struct {
	*url.URL
	Title string
}

type festival struct {
	Place string
	event
}

// ownEvent encodes all of itself.
type ownEvent struct {
	time.Time
	Name string
}

func (e ownEvent) GobEncode() ([]byte, error)   { return []byte(e.Name), nil }
func (e *ownEvent) GobDecode(text []byte) error { e.Name = string(text); return nil }

// halfEvent has its own decoder only.
type halfEvent struct {
	time.Time
	Name string
}

func (e *halfEvent) GobDecode(text []byte) error { return e.Time.GobDecode(text) }

// ownMoney has its own methods on the pointer.
type ownMoney struct {
	big.Int
	Currency string
}

func (m *ownMoney) MarshalBinary() ([]byte, error)    { return []byte(m.Currency), nil }
func (m *ownMoney) UnmarshalBinary(text []byte) error { m.Currency = string(text); return nil }
func (m *ownMoney) GobEncode() ([]byte, error)        { return m.MarshalBinary() }
func (m *ownMoney) GobDecode(text []byte) error       { return m.UnmarshalBinary(text) }

// written only encodes itself, read only decodes itself, and mixed does each in another way.
type (
	written float64
	read    struct{ N int }
	mixed   struct{ N int }
)

func (w written) MarshalBinary() ([]byte, error) { return []byte{1}, nil }
func (r *read) GobDecode([]byte) error           { return nil }
func (m mixed) GobEncode() ([]byte, error)       { return []byte{1}, nil }
func (m *mixed) UnmarshalBinary([]byte) error    { return nil }

// TestEncodesItself: a value of a type that encodes itself comes back whole, or is refused.
func TestEncodesItself(t *testing.T) {
	at := time.Unix(1, 0).UTC()
	address := &url.URL{Host: "a.org"}
	tests := []struct {
		name string
		// value is a pointer to the kept value.
		value any
		err   string
	}{
		{"embedded", &event{at, "a"}, "x is a keep.event, whose encoding is that of the time.Time in it, so Name would be lost: "},
		{"pointer to it", new(&event{at, "a"}), "x is a keep.event, whose encoding"},
		{"in a list", &[]event{{at, ""}, {at, "a"}}, "x[1] is a keep.event, whose encoding"},
		{"in a map", &map[string]event{"a": {at, "a"}}, "x[a] is a keep.event, whose encoding"},
		{"in a field", &struct{ E *event }{&event{at, "a"}}, "x.E is a keep.event, whose encoding"},
		{"type of the same fields", &party{at, "a"}, "x is a keep.party, whose encoding"},
		{"type without a name", &struct {
			big.Int
			Currency string
		}{*big.NewInt(1), "EUR"}, "so Currency would be lost: give the field a name"},
		{"after another field", &money{"EUR", *big.NewInt(1)}, "x is a keep.money, whose encoding is that of the big.Int in it, so Currency would be lost"},
		{"deeper", &festival{"", event{at, "a"}}, "x is a keep.festival, whose encoding is that of the time.Time in it, so Name would be lost"},
		{"around it", &festival{"a", event{at, ""}}, "so Place would be lost"},
		{"embedded pointer", &bookmark{address, "a"}, "x is a keep.bookmark, whose encoding is that of the *url.URL in it, so Title would be lost"},
		{"embedded pointer alone", &bookmark{URL: address}, "the *url.URL in it, which is nil when x is loaded"},
		{"embedded nil", &[]bookmark{{}}, "the *url.URL in it, which is nil when x[0] is loaded"},
		{"own encoder, embedded decoder", &halfEvent{at, "a"}, "x is a keep.halfEvent, whose encoding is that of the time.Time in it, so Name would be lost"},
		{"only a number's encoder", new(written(3)), "x is a keep.written, which has MarshalBinary but not UnmarshalBinary"},
		{"numbers", &map[string]written{"a": 3}, "x[...] is a keep.written, which has MarshalBinary but not UnmarshalBinary"},
		{"only a decoder", &read{3}, "x is a keep.read, which has GobDecode but not GobEncode"},
		{"two ways", &mixed{3}, "x is a keep.mixed, which has GobEncode but not GobDecode"},
		{"only a decoder, and no value", &map[string][]struct{ R *read }{}, "x[...][...].R is a keep.read, which has GobDecode but not GobEncode"},
		{"behind an interface", new(any(written(3))), "x is a keep.written, which has MarshalBinary but not UnmarshalBinary"},
		{"encoder of the pointer in a map", &map[string]big.Int{"a": *big.NewInt(1)}, "x[a] is a big.Int, which gob can't encode in a map or an interface: keep a *big.Int there"},

		{"only the embedded value", &event{Time: at}, ""},
		{"zero", &bookmark{}, ""},
		{"own methods", &ownEvent{Name: "a"}, ""},
		{"own methods of the pointer", &ownMoney{Currency: "EUR"}, ""},
		{"list of times", &[]time.Time{at, {}}, ""},
		{"named fields", &struct {
			At   time.Time
			Name string
		}{at, "a"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, errs := session(t)
			Vars{"x": tt.value}.Save()
			text, _ := os.ReadFile(errs)
			if !strings.Contains(string(text), tt.err) || (tt.err == "") != (len(text) == 0) {
				t.Fatalf("said %q, want %q", text, tt.err)
			}
			after := reflect.New(reflect.TypeOf(tt.value).Elem())
			Vars{"x": after.Interface()}.Load(nil)
			if tt.err == "" && !reflect.DeepEqual(after.Interface(), tt.value) {
				t.Errorf("%+v came back as %+v", tt.value, after)
			}
		})
	}
}

// TestAdviceOnEmbedded: a struct of the notebook can be changed, another package's can't.
func TestAdviceOnEmbedded(t *testing.T) {
	for _, tt := range []struct {
		t    reflect.Type
		want string
	}{
		{reflect.TypeFor[struct{ time.Time }](), "give the field a name"},
		{reflect.TypeFor[event](), "the type is package gonbatch/kernel/keep's: keep what it is made from, in a variable of another type, and make it again in each cell"},
	} {
		if got := naming(tt.t); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.t, got, tt.want)
		}
	}
}

// moody panics when it encodes 2, and when it decodes 3.
type moody struct{ N int }

func (m moody) GobEncode() ([]byte, error) {
	if m.N == 2 {
		panic("no 2")
	}
	return []byte{byte(m.N)}, nil
}

func (m *moody) GobDecode(text []byte) error {
	if text[0] == 3 {
		panic("no 3")
	}
	m.N = int(text[0])
	return nil
}

// TestPanics: a method that panics neither ends the program nor loses other variables.
func TestPanics(t *testing.T) {
	dir, errs := session(t)
	a, m, z := 1, moody{2}, 3
	vars := Vars{"a": &a, "m": &m, "z": &z}
	vars.Save()
	if text, _ := os.ReadFile(errs); string(text) != "%keep m: encoding it panics: no 2" {
		t.Errorf("said %q", text)
	}
	if drafts, _ := filepath.Glob(filepath.Join(dir, "*.new")); drafts != nil {
		t.Errorf("%v is left", drafts)
	}
	m.N = 3
	vars.Save()
	a, m, z = 0, moody{7}, 0
	vars.Load(nil)
	said := stderrOf(t, func() { vars.Begin()() })
	if a != 1 || m.N != 7 || z != 3 {
		t.Errorf("loaded %d, %v, %d", a, m, z)
	}
	want := "%keep m: decoding the kept value panics: no 3: it has its initial value; the kept one stays until a program changes m, or until %keep -d m\n"
	if said != want {
		t.Errorf("said %q, want %q", said, want)
	}
	// The value stayed, also if the initial value can't be encoded.
	m.N = 2
	vars.Load(nil)
	stderrOf(t, func() { vars.Begin()() })
	if text, err := os.ReadFile(rundir.KeptValue(dir, "m", 0)); err != nil || !strings.HasSuffix(string(text), "\x01\x03\x00") {
		t.Errorf("the value is gone: %q, %v", text, err)
	}
}
