package gocell

import (
	"slices"
	"testing"
)

func TestUndefined(t *testing.T) {
	tests := []struct{ name, message, key, source string }{
		{"a function", "undefined: größe", "größe", "import \"fmt\"\n%env A b\nfunc größe() int { return 1 }"},
		{"a variable", "undefined: x", "x", "var (\n\ty = 2\n\tx = 1\n)\n%%\nprintln(x)"},
		{"a type", "undefined: Net", "Net", "type Net struct{}"},
		{"a method", "n.Forward undefined (type *Net has no field or method Forward)", "Net~Forward", "func (n *Net) Forward() {}"},
		{"of a generic type", "l.Len undefined (type List[int] has no field or method Len)", "List~Len", "func (l List[T]) Len() int { return 0 }"},
		{"another package's", "undefined: strings.Foo", "", ""},
		{"another mistake", "declared and not used: x", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			key := Undefined(tt.message)
			if key != tt.key {
				t.Errorf("key %q, want %q", key, tt.key)
			}
			if key != "" && (!Declares(tt.source, key) || Declares("%%\nx, Net, größe := 1, 2, 3", key)) {
				t.Errorf("%q should declare %q, and local variables should not", tt.source, key)
			}
		})
	}
}

func TestSession(t *testing.T) {
	tests := []struct {
		name    string
		sources []string
		want    []string
	}{
		{"nothing", nil, nil},
		{"a main cell", []string{"%%\nx := 1\n_ = x", "func main() {}"}, nil},
		{"an edited cell", []string{"var a, b = 1, 2\nfunc (t *T) String() string { return \"\" }", "var a = 1"}, []string{"T~String", "a", "b"}},
		{"forgotten", []string{"func a() {}\nfunc b() {}\nfunc c() {}", "%rm a\n%remove b"}, []string{"c"}},
		{"forgotten and declared again", []string{"func a() {}", "%rm a\nfunc a() {}"}, []string{"a"}},
		{"reset", []string{"func a() {}", "%reset go.mod", "%reset\nfunc b() {}"}, []string{"b"}},
		{"another language", []string{"%%bash\nfunc a() {}"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Session(tt.sources); !slices.Equal(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
