package result_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/kernel/display"
	"gonbatch/submit/result"
)

// TestCompare: the table has a row for each training run, the flags that differ, and the newest
// metrics.
func TestCompare(t *testing.T) {
	one := newRun(t, map[string]string{
		"manifest.json": `{"format":1,"name":"a","flags":{"lr":"0.1","epochs":"3","only-a":"x"}}`,
		"metrics.jsonl": `{"step":1,"train/loss":2,"train/data_wait":0.1}` + "\n" + `{"step":2,"train/loss":0.5,"val/loss":1}` + "\n",
	})
	sweep := newRun(t, map[string]string{
		"manifest.json": `{"format":1,"name":"b","flags":{"lr":"<0.2>","epochs":"3"}}`,
		"metrics.jsonl": `{"step":1,"val/loss":4,"training":"rate-1"}` + "\n" + `{"step":1,"val/loss":3,"training":"rate-2"}` + "\n" +
			`{"step":2,"val/loss":2,"val/accuracy":0.75,"training":"rate-1"}` + "\n",
	})
	table := result.Compare(one, sweep)
	want := strings.Join([]string{
		"run      training  -lr    -only-a  train/loss  val/accuracy  val/loss",
		"mnist-1            0.1    x        0.5                       1",
		"mnist-1  rate-1    <0.2>                       0.75          2",
		"mnist-1  rate-2    <0.2>                                     3", "",
	}, "\n")
	if got := table.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if html := table.Bundle()[display.HTML].(string); !strings.Contains(html, "&lt;0.2&gt;") || strings.Count(html, "<tr>") != 4 {
		t.Errorf("as HTML: %s", html)
	}
	if got := sweep.Training("rate-1").Series("val/loss"); len(got) != 2 || got[1].Value != 2 {
		t.Errorf("the series of one training run is %v", got)
	}
	defer func() {
		if err := recover(); err == nil || !strings.Contains(err.(error).Error(), `no training "rate-3", only ["rate-1" "rate-2"]`) {
			t.Errorf("got %v", err)
		}
	}()
	sweep.Training("rate-3")
}

// TestCompareParams: the hyper-parameters that differ are columns, also those of the training runs
// of one run. A flag of the same name has none of its own.
func TestCompareParams(t *testing.T) {
	metrics := `{"step":1,"val/loss":1,"training":"a"}` + "\n" + `{"step":1,"val/loss":2,"training":"b"}` + "\n"
	params := func(training, width, seed, epochs string) string {
		return `{"training":"` + training + `","params":[{"name":"width","value":"` + width + `"},{"name":"seed","value":"` + seed + `"},
			{"name":"batch_size","value":"64"},{"name":"max_epochs","value":"` + epochs + `"},{"name":"name","value":"` + training + `"}]}`
	}
	sweep := newRun(t, map[string]string{
		"manifest.json": `{"format":1,"parameters":{"folds":"5"},"flags":{"lr":"0.1","max_epochs":"4"}}`, "metrics.jsonl": metrics,
		"hyperparameters/a.json": params("a", "16", "1", "4"), "hyperparameters/b.json": params("b", "32", "1", "4"),
	})
	plain := newRun(t, map[string]string{
		"manifest.json": `{"format":1,"parameters":{"folds":"6"},"flags":{"lr":"0.2"}}`, "metrics.jsonl": `{"step":1,"val/loss":3,"training":"a"}` + "\n",
		"hyperparameters/a.json": params("a", "16", "2", "1"),
	})
	without := newRun(t, map[string]string{"manifest.json": `{"format":1,"parameters":{"folds":"6"},"flags":{"lr":"0.2"}}`, "metrics.jsonl": ""})
	want := strings.Join([]string{
		"run      training  -p folds  -lr  width  seed  max_epochs  val/loss",
		"mnist-1  a         5         0.1  16     1     4           1",
		"mnist-1  b         5         0.1  32     1     4           2",
		"mnist-1  a         6         0.2  16     2     1           3",
		"mnist-1            6         0.2                           ", "",
	}, "\n")
	if got := result.Compare(sweep, plain, without).String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := result.Compare(sweep).Columns; !slices.Equal(got, []string{"run", "training", "width", "val/loss"}) {
		t.Errorf("of a run with two training runs: %q", got)
	}
	if got := sweep.Params(); got["width"] != "" || got["batch_size"] != "64" || sweep.Training("b").Params()["width"] != "32" {
		t.Errorf("the hyper-parameters of all training runs are %v", got)
	}
	wrong := newRun(t, map[string]string{
		"manifest.json": `{"format":1,"flags":{"max_epochs":"7"}}`, "metrics.jsonl": `{"step":1,"val/loss":3,"training":"a"}` + "\n", "hyperparameters/a.json": params("a", "16", "2", "1"),
	})
	if got := result.Compare(sweep, wrong).Columns; !slices.Contains(got, "-max_epochs") || !slices.Contains(got, "max_epochs") {
		t.Errorf("a flag that the program does not use: %q", got)
	}
}

// TestForeignParams: another program's file among the hyper-parameters changes none of them.
func TestForeignParams(t *testing.T) {
	run := newRun(t, map[string]string{"manifest.json": `{"format":1}`, "hyperparameters/notes.json": `{"foo":1}`, "hyperparameters/a.json": `{"training":"a","params":[{"name":"width","value":"16"}]}`})
	if got := run.Params(); len(got) != 1 || got["width"] != "16" {
		t.Errorf("got %v", got)
	}
}

// TestFind: run directories are found, and nothing else.
func TestFind(t *testing.T) {
	one := newRun(t, map[string]string{"manifest.json": `{"format":1}`, "../notes/x": "", "../mnist-0": ""})
	found := result.Find(filepath.Join(filepath.Dir(one.Dir()), "*"))
	if len(found) != 1 || found[0].Dir() != one.Dir() {
		t.Errorf("found %v", found)
	}
	defer func() {
		if err := recover(); err == nil || !strings.Contains(err.(error).Error(), "no run matches") {
			t.Errorf("got %v", err)
		}
	}()
	result.Find(filepath.Join(t.TempDir(), "*"))
}

// TestCompareNothing: without runs, the table is empty.
func TestCompareNothing(t *testing.T) {
	if got := result.Compare(); len(got.Rows) != 0 {
		t.Errorf("got %v", got)
	}
}

// TestLongCells: a cell with several lines stays in its row.
func TestLongCells(t *testing.T) {
	table := result.Table{Columns: []string{"run", "layers"}, Rows: [][]string{{"a", "dense\n\tdense"}, {"b", "x"}}}
	if got, want := table.String(), "run  layers\na    dense  dense\nb    x\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
