package build

import (
	"strings"
	"testing"
)

func TestMarkUnused(t *testing.T) {
	const declarations = `package main

import "fmt"

var kept = 1

var other = 2

type net struct{ kept int }

func (net) size() int { return kept }

func helper() int { return kept }

func call() int { return helper() }

`
	tests := []struct {
		name, source string
		used         bool
	}{
		{"nothing", declarations + "func main() { fmt.Println(other) }", false},
		{"main", declarations + "func main() { fmt.Println(kept) }", true},
		{"a function of a function", declarations + "func main() { fmt.Println(call()) }", true},
		{"a method", declarations + "func main() { fmt.Println(net{}) }", true},
		{"a field of the same name", declarations + "func main() { var n struct{ kept int }; fmt.Println(n.kept) }", true},
		{"a closure", declarations + "func main() { func() { kept++ }() }", true},
		{"an init function", declarations + "func init() { kept = 3 }\nfunc main() {}", true},
		{"the initial value of a variable", declarations + "var later = func() int { return call() }\nfunc main() {}", true},
		{"its own initial value", strings.Replace(declarations, "= 1", "= len(fmt.Sprint(1))", 1) + "func main() {}", false},
		{"C", strings.Replace(declarations, "func helper", "//export helper\nfunc helper", 1) + "func main() {}", true},
		{"the linker", declarations + "//go:linkname helper other.helper\nfunc main() {}", true},
		{"an indented directive", declarations + "\t//go:linkname helper other.helper\nfunc main() {}", true},
		{"WebAssembly", strings.Replace(declarations, "func helper", "//go:wasmexport helper\nfunc helper", 1) + "func main() {}", true},
		{"an alias's method", declarations + "type b struct{}\ntype a = b\nfunc (a) String() string { return fmt.Sprint(kept) }\nfunc main() { fmt.Println(b{}) }", true},
		{"a method of an alias of a pointer", declarations + "type b struct{}\ntype a = *b\nfunc (a) String() string { return fmt.Sprint(kept) }\nfunc main() { fmt.Println(&b{}) }", true},
		{"an alias of an alias", declarations + "type b struct{}\ntype a = b\ntype c = a\nfunc (c) String() string { return fmt.Sprint(kept) }\nfunc main() { fmt.Println(b{}) }", true},
		{"an unused alias's method", declarations + "type b struct{}\ntype a = b\nfunc (a) String() string { return fmt.Sprint(kept) }\nfunc main() {}", false},
		{"an alias of itself", declarations + "type a = a\nfunc (a) String() string { return fmt.Sprint(kept) }\nfunc main() {}", false},
		{"no Go", declarations + "func main() {", true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			hashes := map[string]string{"kept": "hash"}
			markUnused(hashes, tc.source)
			if used := hashes["kept"] == "hash"; used != tc.used {
				t.Errorf("used: %v (%q), want %v", used, hashes["kept"], tc.used)
			}
			if hash := strings.TrimPrefix(hashes["kept"], unusedMark); hash != "hash" {
				t.Errorf("hash %q", hash)
			}
		})
	}
}
