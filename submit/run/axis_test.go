package run

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// TestParseAxes: commas in brackets and quotes divide nothing, and ranges are whole numbers.
func TestParseAxes(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"lr=1e-3,1e-2", "lr: 1e-3|1e-2"},
		{"seed=1..4", "seed: 1|2|3|4"},
		{"seed=-1..1, 7", "seed: -1|0|1|7"},
		{"layers=[64,32],[128],{a: [1,2], b: 3}", "layers: [64,32]|[128]|{a: [1,2], b: 3}"},
		{`name="a,b",'c,d'`, `name: "a,b"|'c,d'`},
		{"path=a=b,..", "path: a=b|.."},
		{"x=1..2..3", "x: 1..2..3"},
		{"lr", "give NAME=VALUE,VALUE"}, {"=1", "give NAME=VALUE,VALUE"}, {"lr=", "give NAME=VALUE,VALUE"}, {"lr=1,,2", "a value is empty"}, {"lr=1,", "a value is empty"},
		{"lr=[1,2", "not closed"}, {"lr='a", "not closed"}, {"seed=3..1", "must go up"}, {"seed=1..100000", "at most 1000 numbers"}, {"seed=1,1", "the value 1 is there twice"},
	} {
		axes, err := parseAxes([]string{tc.text})
		got := fmt.Sprint(err)
		if err == nil {
			got = axes[0].name + ": " + strings.Join(axes[0].values, "|")
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%q: %s, want %s", tc.text, got, tc.want)
		}
	}
	for _, texts := range [][]string{{"a=1", "a=2"}, {"a=1..100", "b=1..100"}} {
		if axes, err := parseAxes(texts); err == nil {
			t.Errorf("%q: %v", texts, axes)
		}
	}
}

// TestGrid: each combination is there once.
func TestGrid(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		var axes []axis
		want := 1
		for i := range 1 + random.IntN(3) {
			a := axis{name: fmt.Sprint("x", i)}
			for v := range 1 + random.IntN(4) {
				a.values = append(a.values, fmt.Sprint(v))
			}
			axes = append(axes, a)
			want *= len(a.values)
		}
		seen := map[string]bool{}
		for _, p := range grid(axes) {
			seen[p.String()] = true
			if len(p) != len(axes) {
				t.Fatalf("%v has not all axes", p)
			}
		}
		if len(seen) != want {
			t.Fatalf("%v: %d points, want %d", axes, len(seen), want)
		}
	}
}
