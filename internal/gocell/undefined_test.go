package gocell

import "testing"

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
