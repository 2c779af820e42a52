package build

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/submit/export"
)

// TestParametersAtRunTime: parameters that get their values when the program starts have the same
// values and types as those in the source, and all values share a program.
func TestParametersAtRunTime(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	pick := func(texts ...string) string { return texts[random.IntN(len(texts))] }
	whole := func(most int64) func() string {
		return func() string {
			n := random.Int64N(most)
			return pick(strconv.FormatInt(n, 10), "0"+strconv.FormatInt(n, 10), fmt.Sprintf("0x%x", n), fmt.Sprintf("0b%b", n))
		}
	}
	float := func() string {
		return pick(strconv.Itoa(random.IntN(9)), fmt.Sprint(random.Float64()), fmt.Sprint(random.ExpFloat64()*1e30), "1e-30", "-0", "3.", ".5", "1_0")
	}
	text := func() string {
		return pick("", "plain", "a \"b\"\n$(c)", "λ <&>\u2028", "\xff\xfe", "\x00"[:0]+"\t\\", "`", "null", "{}")
	}
	kinds := []struct {
		declare string
		value   func() string
	}{
		{"var %s = 1", whole(1 << 40)}, {"var %s int8", whole(127)}, {"var %s = uint64(3)", whole(1 << 62)}, {"var %s level = 2", whole(9)}, {"var %s = level(1)", whole(9)},
		{"var %s = 1e-3", float}, {"var %s float32 = 2 // note", float}, {"var %s = rate(2)", float},
		{"var %s = \"x\"", text}, {"var %s mode", text}, {"var %s = `a\nb`", text},
		{"var %s = false", func() string { return pick("true", "false", "1", "T") }}, {"var %s flagged", func() string { return pick("true", "0") }},
		{"var %s = 3 * time.Minute", func() string { return pick("90s", "-1h30m", "0", "1ns") }},
		{"var %s = []int{1}", func() string { return pick("[]", "[1, 2]") }}, {"const %s = 7", whole(1000)},
		{"var %s = \"long\"", func() string { return strings.Repeat("<", 30000) }},
	}
	// The interface hides from the compiler what asked needs.
	const hidden = "type asker interface{ ask() string }\ntype teller struct{}\nfunc (teller) ask() string { return fmt.Sprint(p0, p4, p9) }\n" +
		"var tell asker = teller{}\nvar asked = tell.ask()\nfunc any() string { return asked }\n"
	var source, show strings.Builder
	source.WriteString(hidden)
	show.WriteString("fmt.Println(any())\n")
	source.WriteString("type level int\nfunc (l *level) UnmarshalText([]byte) error { panic(l) }\ntype rate float32\ntype mode string\ntype flagged bool\n")
	values := []map[string]string{{}, {}}
	var names []string
	for i := range 3 * len(kinds) {
		k, name := kinds[i%len(kinds)], fmt.Sprintf("p%d", i)
		fmt.Fprintf(&source, k.declare+"\n", name)
		fmt.Fprintf(&show, "fmt.Printf(\"%%s %%T %%#v\\n\", %q, %s, %[2]s)\n", name, name)
		names = append(names, name)
		for _, v := range values {
			v[name] = k.value()
			if strings.Contains(k.declare, "[]") || strings.Contains(k.declare, "const") || values[1][name] == "\xff\xfe" {
				v[name] = values[0][name] // The source has it: another value is another program.
			}
		}
		if values[0][name] == "\xff\xfe" || values[1][name] == "\xff\xfe" {
			values[0][name], values[1][name] = "\xff\xfe", "\xff\xfe"
		}
	}
	nb := cells(source.String(), "%%\n"+show.String())
	nb.Cells[0].Tags = []string{"parameters"}
	cache := t.TempDir()
	output := func(values map[string]string, atRunTime []string) (string, *Result) {
		m, err := export.FromNotebook(nb, export.Options{SourceDir: checkout(t), Parameters: values, AtRunTime: atRunTime})
		if err != nil {
			t.Fatalf("%q: %v", values, err)
		}
		dir := filepath.Join(t.TempDir(), "module")
		if err := m.Write(dir); err != nil {
			t.Fatal(err)
		}
		r, err := Build(context.Background(), dir, m, Options{CacheDir: cache})
		if err != nil {
			t.Fatalf("%q: %v", values, err)
		}
		out, err := run(t, r, m.Cells[0])
		if err != nil {
			t.Fatalf("%q: %v\n%s", values, err, out)
		}
		return out, r
	}
	var hashes []string
	for _, v := range values {
		want, _ := output(v, nil)
		got, r := output(v, names)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-in the source +at run time):\n%s", v, diff)
		}
		hashes = append(hashes, r.Hash)
	}
	if hashes[0] != hashes[1] {
		t.Errorf("other values of %v are another program", slices.Sorted(maps.Keys(values[0])))
	}
}
