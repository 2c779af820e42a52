package relay

import (
	"slices"
	"strings"
	"testing"
)

// TestKeepers: a cell that only keeps variables that can't be kept is not part of a job.
func TestKeepers(t *testing.T) {
	r := &relay{}
	codes := []string{"%keep a", "%keep a, b", "%keep a\nvar c = 1", "%keep\n%keep a", "var a = 1", "!x\n%keep a", "%keep b"}
	for i, code := range codes {
		r.executed = append(r.executed, executed{count: i + 1, code: code, succeeded: true})
	}
	places := r.keepers([]string{"a"})
	if want := []string{"cell [1] line 1", "cell [2] line 1", "cell [3] line 1", "cell [4] line 2", "cell [6] line 2"}; !slices.Equal(places, want) {
		t.Errorf("asked for in %q, want %q", places, want)
	}
	if got := r.sources(); !slices.Equal(got, codes[1:]) {
		t.Errorf("%q are left, want %q", got, codes[1:])
	}
}

// TestRemedies: what to do about the environment and about a method that GoNB has not replaced.
func TestRemedies(t *testing.T) {
	e := &execution{relay: &relay{}, count: 5}
	for _, place := range []string{" at ./main.go 9:16", " at ./main.go:9:16"} {
		f := e.compilerFailure("./main.go:9:16: method Pair.Set already declared"+place, []string{"Cell[5]: Line 2\nfunc (p Pair[A]) Set() {}\nmethod Pair.Set already declared" + place})
		if f == nil || !strings.HasPrefix(f.value, "line 2: method Pair.Set already declared; if its receiver had") {
			t.Errorf("%s: %v", place, f)
		}
	}
	if got := e.goRemedy("build cache is required, but could not be located: GOCACHE is not defined"); !strings.Contains(got, "start Jupyter with HOME") {
		t.Errorf("no home: %q", got)
	}
}

// TestModuleRemedy: a module that does not compile is named with its version.
func TestModuleRemedy(t *testing.T) {
	tests := []struct{ message, want string }{
		{"go: finding module for package x\n/root/go/pkg/mod/github.com/gomlx/bsplines@v0.2.0/plotly/plotly.go:15:2: cannot find module providing package x\n", "github.com/gomlx/bsplines v0.2.0 does not compile: "},
		{"# x\n../../root/go/pkg/mod/github.com/!burnt!sushi/mod/v2@v2.0.0-rc.1/a.go:7:12: undefined: y\n", "github.com/BurntSushi/mod/v2 v2.0.0-rc.1 does not compile: "},
		{"# cell\n./main.go:7:12: undefined: y\n", ""},
		{"panic: x\n\t/root/go/pkg/mod/example.com/a@v1.0.0/a.go:7 +0x1d\n", ""},
	}
	for _, tt := range tests {
		if got := moduleRemedy(tt.message); !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
			t.Errorf("%q: %q, want %q", tt.message, got, tt.want)
		}
	}
}
