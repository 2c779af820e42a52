package rundir_test

import (
	"math"
	"os"
	"slices"
	"testing"

	"gonbatch/internal/rundir"
)

// TestMetricsReader reads a file that grows, is cut off in the middle of a line, and is replaced by
// a shorter and by an unrelated one.
func TestMetricsReader(t *testing.T) {
	dir := rundir.At(t.TempDir())
	r := rundir.MetricsReader{File: dir.Metrics()}
	first := `{"step":1,"time":"2026-11-21T10:00:00Z","train/loss":2}` + "\n"
	second := `{"step":2,"training":"g","train/loss":"NaN","val/loss":"+Inf"}` + "\n"
	steps := []struct {
		name, text string
		want       []int64
	}{
		{name: "no file"},
		{name: "a line", text: first, want: []int64{1}},
		{name: "half a line", text: first + second[:10], want: []int64{1}},
		{name: "all of it", text: first + second, want: []int64{1, 2}},
		{name: "no JSON", text: first + second + "oops\n" + `{"step":3}` + "\n", want: []int64{1, 2, 3}},
		{name: "went back", text: first, want: []int64{1}},
	}
	for _, step := range steps {
		if step.text != "" {
			if err := os.WriteFile(dir.Metrics(), []byte(step.text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		all, err := r.Read()
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		var got []int64
		for _, m := range all {
			got = append(got, m.Step)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: steps %v, want %v", step.name, got, step.want)
		}
	}
	if err := rundir.WriteFileAtomic(dir.Metrics(), []byte(second+first+first), 0o644); err != nil {
		t.Fatal(err)
	}
	all, err := r.Read()
	if err != nil || len(all) != 3 {
		t.Fatalf("replaced: %v, %v; want three", all, err)
	}
	if m := all[0]; m.Training != "g" || !math.IsNaN(m.Values["train/loss"]) || !math.IsInf(m.Values["val/loss"], 1) || !m.Time.IsZero() {
		t.Errorf("replaced: %+v", m)
	}
	if m := all[1]; m.Time.Hour() != 10 || m.Values["train/loss"] != 2 || len(m.Values) != 1 {
		t.Errorf("replaced: %+v", m)
	}
}

func TestReadMetricsUnreadable(t *testing.T) {
	dir := rundir.At(t.TempDir())
	if err := os.Mkdir(dir.Metrics(), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := rundir.ReadMetrics(dir); err == nil {
		t.Error("a folder was read as metrics")
	}
}
