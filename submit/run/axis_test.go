package run

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
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
		{"lr=1e-5..1e-2", "1e-5..1e-2 is a range of real numbers, from which --random N draws"}, {"lr=log(1..9)", "is a range of real numbers"},
	} {
		axes, err := parseAxes([]string{tc.text}, false)
		got := fmt.Sprint(err)
		if err == nil {
			got = axes[0].name + ": " + strings.Join(axes[0].values, "|")
		}
		if !strings.Contains(got, tc.want) {
			t.Errorf("%q: %s, want %s", tc.text, got, tc.want)
		}
	}
	for _, texts := range [][]string{{"a=1", "a=2"}, {"a=1..100", "b=1..100"}} {
		if axes, err := parseAxes(texts, false); err == nil {
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

// TestDraw: random values are in their range, of its kind, and spread over it; points are
// different.
func TestDraw(t *testing.T) {
	for text, want := range map[string]struct {
		low, high, middle float64
		whole             bool
	}{
		"x=1e-5..1e-2": {1e-5, 1e-2, 5e-3, false}, "x=log(1e-5..1e-1)": {1e-5, 1e-1, 1e-3, false}, "x=-3..3": {-3, 3, 0, true}, "x=log(1..1024)": {1, 1024, 32, true},
		"x=-1.5..2": {-1.5, 2, 0.25, false}, "x=4,5": {4, 5, 4.5, true}, "x=1.23456..1.23457": {1.23456, 1.23457, 1.234565, false},
	} {
		axes, err := parseAxes([]string{text}, true)
		if err != nil {
			t.Fatal(err)
		}
		below, least, most := 0, math.Inf(1), math.Inf(-1)
		for range 2000 {
			value := axes[0].draw()
			v, err := strconv.ParseFloat(value, 64)
			if err != nil || v < want.low || v > want.high {
				t.Fatalf("%s: %s", text, value)
			}
			if _, err := strconv.Atoi(value); want.whole && err != nil {
				t.Fatalf("%s: %s is no whole number", text, value)
			}
			if v < want.middle {
				below++
			}
			least, most = min(least, v), max(most, v)
		}
		if below < 700 || below > 1300 {
			t.Errorf("%s: %d of 2000 values are below %g", text, below, want.middle)
		}
		if want.whole && (least != want.low || most < 0.9*want.high) {
			t.Errorf("%s: between %g and %g", text, least, most)
		}
	}
	for _, text := range []string{"x=3..1", "x=log(0..1)", "x=log(-1..1)", "x=1..1", "x=0..Inf", "x=-1e308..1e308"} {
		if axes, err := parseAxes([]string{text}, true); err == nil {
			t.Errorf("%s: %+v", text, axes)
		}
	}
	axes, err := parseAxes([]string{"a=1..3", "b=x,y"}, true)
	if err != nil {
		t.Fatal(err)
	}
	points, err := drawPoints(axes, 6)
	if err != nil || len(points) != 6 {
		t.Errorf("%v, %v", points, err)
	}
	if points, err := drawPoints(axes, 7); err == nil {
		t.Errorf("7 of 6 points: %v", points)
	}
}
