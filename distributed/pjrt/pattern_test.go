package pjrt

import (
	"slices"
	"strings"
	"testing"
)

// TestPattern: patterns match whole statements, over several lines as well, but not those in the
// body of another, and leave the rest of a program as it is.
func TestPattern(t *testing.T) {
	program := strings.Join([]string{
		`    %1 = "stablehlo.add"(%0, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>`,
		`    %8 = "stablehlo.reduce"(%7, %1) ({`,
		`      ^sum(%a: tensor<f32>, %b: tensor<f32>) :`,
		`          %9 = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>`,
		`          "stablehlo.return"(%9) : (tensor<f32>) -> ()`,
		`    }) { dimensions = array<i64: 0> } : (tensor<8xf32>, tensor<f32>) -> tensor<f32>`,
		`    %2 = "stablehlo.slice"(%1) {`,
		`      strides = array<i64: 1>`,
		`    } : (tensor<8xf32>) -> tensor<4xf32>`,
		`    %3 = "stablehlo.add"(%2, %2) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>`,
	}, "\n")
	var names []string
	for _, m := range arrayOperation.all(program) {
		names = append(names, m[1]+" "+m[2]+" "+m[6])
	}
	want := []string{"%1 add tensor<f32>", "%2 slice tensor<4xf32>", "%3 add tensor<4xf32>"}
	if !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
	out, replaced := arrayOperation.replace(program, func(m []string) (string, bool) { return "    " + m[1], m[2] == "slice" })
	lines := strings.Split(program, "\n")
	if want := strings.Join(slices.Concat(lines[:6], []string{"    %2"}, lines[9:]), "\n"); out != want || replaced != 1 {
		t.Errorf("replaced %d, which gives\n%s\nwant\n%s", replaced, out, want)
	}
	if m := productLine.ofLine(lines[0]); m != nil {
		t.Errorf("an addition matches as a product: %q", m)
	}
	statements := 0
	for rest := program; rest != ""; statements++ {
		_, rest = statementOf(rest)
	}
	if statements != 4 {
		t.Errorf("%d statements, want 4", statements)
	}
	if at := arrayOperation.find(program, len(program)); at != nil {
		t.Errorf("a match behind the end: %v", at)
	}
}
