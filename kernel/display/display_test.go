package display

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"gonbatch/internal/rundir"
)

type point struct {
	X, Y int
	name string
}

type named struct{ text string }

func (n named) String() string { return n.text }

type own struct{}

func (own) Bundle() Bundle { return Bundle{"text/markdown": "*own*"} }

type chart struct{ text string }

func (c chart) Render(w io.Writer) error { _, err := io.WriteString(w, c.text); return err }

type loop struct{ Next *loop }

func TestShort(t *testing.T) {
	long := make([]int, 47_040_000)
	long[len(long)-1] = 9
	inf := []any{1}
	inf[0] = inf
	tests := []struct {
		name  string
		value any
		want  string
	}{
		{name: "number", value: 42, want: "42"},
		{name: "text", value: "a b", want: "a b"},
		{name: "nil", value: nil, want: "<nil>"},
		{name: "error", value: errors.New("no"), want: "no"},
		{name: "duration", value: 1500 * time.Millisecond, want: "1.5s"},
		{name: "list", value: []float32{1, 0.5}, want: "[1 0.5]"},
		{name: "empty list", value: []int{}, want: "[]"},
		{name: "struct", value: point{1, 2, "p"}, want: "{1 2 p}"},
		{name: "pointer", value: &point{1, 2, "p"}, want: "&{1 2 p}"},
		{name: "map", value: map[string]int{"b": 2, "a": 1}, want: "map[a:1 b:2]"},
		{name: "stringer within", value: []named{{"x"}, {"y"}}, want: "[x y]"},
		{name: "long list", value: long, want: "[0 0 0 0 0 0 ... 0 0 9] (47040000 elements)"},
		{name: "array", value: [3]bool{true}, want: "[true false false]"},
		{name: "long text", value: strings.Repeat("ä", 3000), want: strings.Repeat("ä", 2000) + " ..."},
		{name: "contains itself", value: inf, want: "[[[[[[[[[[[[[...]]]]]]]]]]]]]"},
		{name: "nil pointer", value: (*loop)(nil), want: "<nil>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Short(tt.value); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestOf(t *testing.T) {
	p := plot.New()
	line, err := plotter.NewLine(plotter.XYs{{X: 0, Y: 1}, {X: 1, Y: 0}})
	if err != nil {
		t.Fatal(err)
	}
	p.Add(line)
	type figure struct {
		Data   []map[string]any `json:"data"`
		Layout map[string]any   `json:"layout"`
	}
	many := make([]point, 1000)
	tests := []struct {
		name  string
		value any
		mimes string
		text  string
		in    map[string]string // parts of each format's content
	}{
		{name: "number", value: 1, mimes: "text/plain", text: "1"},
		{name: "image", value: image.NewGray(image.Rect(0, 0, 3, 2)), mimes: "image/png text/plain", text: "*image.Gray (3,2)"},
		{name: "empty image", value: image.NewGray(image.Rectangle{}), mimes: "text/plain", text: "&{[] 0 (0,0)-(0,0)}"},
		{name: "plot of gonum", value: p, mimes: "image/svg+xml text/plain", text: "*plot.Plot", in: map[string]string{SVG: "<svg"}},
		{name: "nil plot", value: (*plot.Plot)(nil), mimes: "text/plain", text: "<nil>"},
		{
			name: "chart", value: chart{"<html>\"&"}, mimes: "text/html text/plain", text: "display.chart",
			in: map[string]string{HTML: "srcdoc=\"&lt;html&gt;&#34;&amp;\""},
		},
		{name: "renders no HTML", value: chart{"text"}, mimes: "text/plain", text: "{text}"},
		{
			name: "plotly", value: &figure{Data: []map[string]any{{"type": "bar", "name": "</script>"}}},
			mimes: "application/vnd.plotly.v1+json text/html text/plain", text: "*display.figure",
			in: map[string]string{HTML: `\u003c/script`},
		},
		{
			name: "table", value: []point{{1, 2, ""}, {30, 4, ""}}, mimes: "text/html text/plain", text: "X   Y\n1   2\n30  4",
			in: map[string]string{HTML: "<tr><td>30</td><td>4</td></tr>"},
		},
		{name: "table of pointers", value: []*point{{1, 2, ""}, nil}, mimes: "text/html text/plain", text: "X  Y\n1  2\n   "},
		{name: "structs with text of their own", value: []named{{"x"}}, mimes: "text/plain", text: "[x]"},
		{name: "a table escapes", value: []struct{ A string }{{"<b>\n"}}, mimes: "text/html text/plain", text: "A\n<b> ", in: map[string]string{HTML: "&lt;b&gt;"}},
		{name: "long table", value: many, mimes: "text/html text/plain", text: "X  Y" + strings.Repeat("\n0  0", 60) + "\n... 940 more"},
		{name: "its own", value: own{}, mimes: "text/markdown text/plain", text: "{}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Of(tt.value)
			var mimes []string
			for mime, content := range got {
				mimes = append(mimes, mime)
				if want := tt.in[mime]; !strings.Contains(fmt.Sprintf("%s", content), want) {
					t.Errorf("%s: %.300s lacks %q", mime, content, want)
				}
			}
			slices.Sort(mimes)
			if strings.Join(mimes, " ") != tt.mimes || got[Text] != tt.text {
				t.Errorf("%s: %q;\nwant %s: %q", mimes, got[Text], tt.mimes, tt.text)
			}
		})
	}
	decoded, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(Of(tests[1].value)[PNG].(string))))
	if err != nil || decoded.Bounds().Dx() != 3 {
		t.Errorf("the image's PNG: %v", err)
	}
}

func TestResult(t *testing.T) {
	tests := []struct {
		name   string
		values []any
		want   string // the file
	}{
		{name: "one", values: []any{42}, want: `{"text/plain":"42"}`},
		{name: "no error", values: []any{42, error(nil)}, want: `{"text/plain":"42"}`},
		{name: "an error", values: []any{0, errors.New("no")}, want: `{"text/plain":"0\nno"}`},
		{name: "nothing", values: []any{nil}},
		{name: "nil pointer", values: []any{(*point)(nil)}},
		{name: "empty list is something", values: []any{[]int(nil)}, want: `{"text/plain":"[]"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv(rundir.EnvCellDir, dir)
			Result(tt.values...)
			text, err := os.ReadFile(filepath.Join(dir, ResultFile))
			if string(text) != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("%s, %v; want %s", text, err, tt.want)
			}
		})
	}
}

func ExampleOf() {
	bundle := Of([]point{{X: 1, Y: 2}, {X: 3, Y: 4}})
	fmt.Println(bundle[Text])
	// Output:
	// X  Y
	// 1  2
	// 3  4
}

func ExampleResult() {
	// Without a kernel the value is printed.
	Result(6*7, error(nil))
	Result(image.NewGray(image.Rect(0, 0, 60, 60))) // Not its pixels.
	// Output:
	// 42
	// *image.Gray (60,60)
}

// TestBundleIsJSON: every result of Of can be encoded as JSON.
func TestBundleIsJSON(t *testing.T) {
	for _, value := range []any{1, "\xff", own{}, []point{{}}, func() {}, make(chan int)} {
		if _, err := json.Marshal(Of(value)); err != nil {
			t.Errorf("%T: %v", value, err)
		}
	}
}
