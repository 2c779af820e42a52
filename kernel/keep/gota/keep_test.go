package gota_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/go-gota/gota/dataframe"
	"github.com/go-gota/gota/series"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/keep"
	_ "gonbatch/kernel/keep/gota"
)

// keeps saves the variable x as one program does, and loads it as the next one does.
func keeps(t *testing.T, before, after any) {
	t.Helper()
	errs := filepath.Join(t.TempDir(), "errors")
	t.Setenv(rundir.EnvKeepDir, t.TempDir())
	t.Setenv(rundir.EnvKeepErrors, errs)
	keep.Vars{"x": before}.Save()
	keep.Vars{"x": after}.Load(nil)
	if text, _ := os.ReadFile(errs); len(text) > 0 {
		t.Errorf("said %q", text)
	}
}

// checkSame compares the frames as their user sees them, and their errors.
func checkSame(t *testing.T, got, want dataframe.DataFrame) {
	t.Helper()
	if !reflect.DeepEqual(got.Types(), want.Types()) || !reflect.DeepEqual(got.Records(), want.Records()) {
		t.Errorf("got %v, want %v", got, want)
	}
	if (got.Err == nil) != (want.Err == nil) || got.Err != nil && got.Err.Error() != want.Err.Error() {
		t.Errorf("got error %v, want %v", got.Err, want.Err)
	}
	if !reflect.DeepEqual(got.Names(), want.Names()) {
		t.Fatalf("got columns %q, want %q", got.Names(), want.Names())
	}
	for _, name := range want.Names() {
		if name == "" {
			continue
		}
		if a, b := got.Col(name), want.Col(name); !reflect.DeepEqual(a.IsNaN(), b.IsNaN()) || a.Type() == series.Float && !sameBits(a.Float(), b.Float()) {
			t.Errorf("column %s: got %v, want %v", name, a, b)
		}
	}
}

func sameBits(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) && !(math.IsNaN(a[i]) && math.IsNaN(b[i])) {
			return false
		}
	}
	return len(a) == len(b)
}

func TestFrames(t *testing.T) {
	csv := dataframe.ReadCSV(strings.NewReader("name,age,height,tall\nAda,36,1.65,false\nGrace,,1.6789012345678901,true\nΑλαν,41,NaN,\n"))
	tests := map[string]dataframe.DataFrame{
		"read from CSV":           csv,
		"filtered":                csv.Filter(dataframe.F{Colname: "age", Comparator: series.Greater, Comparando: 38}),
		"no rows":                 csv.Filter(dataframe.F{Colname: "age", Comparator: series.Greater, Comparando: 99}),
		"an error":                {Err: errors.New("no such column")},
		"no value":                {},
		"two columns of a name":   dataframe.New(series.New([]int{1, 2}, series.Int, "a"), series.New([]int{3, 4}, series.Int, "b")).Rename("a", "b"),
		"a column without a name": dataframe.New(series.New([]int{1}, series.Int, "a")).Rename("", "a"),
		"infinite":                dataframe.New(series.New([]float64{math.Inf(1), math.Inf(-1), math.Copysign(0, -1), math.NaN()}, series.Float, "x")),
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			var got dataframe.DataFrame
			keeps(t, &want, &got)
			checkSame(t, got, want)
			pointer, again := &want, (*dataframe.DataFrame)(nil)
			keeps(t, &pointer, &again)
			checkSame(t, *again, want)
		})
	}
}

func TestRandomSeries(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		values := make([]any, r.IntN(20))
		for i := range values {
			values[i] = []any{nil, "NaN", "a\nb", "12", r.IntN(100) - 50, r.NormFloat64(), r.IntN(2) == 0}[r.IntN(7)]
		}
		want := series.New(values, []series.Type{series.String, series.Int, series.Float, series.Bool}[r.IntN(4)], "x y")
		var got series.Series
		keeps(t, &want, &got)
		if got.Name != want.Name || got.Type() != want.Type() || !reflect.DeepEqual(got.Records(), want.Records()) || !reflect.DeepEqual(got.IsNaN(), want.IsNaN()) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}
