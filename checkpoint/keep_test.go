package checkpoint_test

import (
	"crypto/sha256"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"gonbatch/checkpoint"
	"gonbatch/checkpoint/folder"
)

// newerManifest returns a complete checkpoint.json of the next version.
func newerManifest(t *testing.T) []byte {
	t.Helper()
	body := `{"something": "else"}`
	return fmt.Appendf(nil, "{\n\"version\": 2,\n\"sha256\": \"%x\",\n\"checkpoint\": %s\n}\n", sha256.Sum256([]byte("2\n"+body)), body)
}

// steps checks that the folder has exactly these steps, the newest first.
func steps(t *testing.T, d *checkpoint.Dir, want ...int64) {
	t.Helper()
	all, err := checkpoint.List(d.Path())
	ok(t, err)
	var got []int64
	for _, info := range all {
		got = append(got, info.Step)
	}
	same(t, want, got)
	entries, err := os.ReadDir(d.Path())
	ok(t, err)
	if len(entries) != len(want) {
		t.Errorf("%d entries for %d checkpoints: %v", len(entries), len(want), entries)
	}
}

func TestKeep(t *testing.T) {
	tests := []struct {
		name    string
		options checkpoint.Options
		// losses are the metric's values for steps 1, 2, ...
		losses []float64
		want   []int64
		best   int64
	}{
		{name: "two", losses: []float64{1, 2, 3}, want: []int64{3, 2}},
		{name: "all", options: checkpoint.Options{Keep: math.MaxInt}, losses: []float64{1, 2, 3}, want: []int64{3, 2, 1}},
		{name: "and the smallest", options: checkpoint.Options{Keep: 1, Metric: "loss"}, losses: []float64{5, 1, 2, 3}, want: []int64{4, 2}, best: 2},
		{name: "and the largest", options: checkpoint.Options{Keep: 1, Metric: "loss", Mode: checkpoint.Max}, losses: []float64{5, 1, 2, 3}, want: []int64{4, 1}, best: 1},
		{name: "of equal ones the newest", options: checkpoint.Options{Keep: 1, Metric: "loss"}, losses: []float64{1, 1, 2}, want: []int64{3, 2}, best: 2},
		{name: "never one that is no number", options: checkpoint.Options{Keep: 1, Metric: "loss", Mode: checkpoint.Max}, losses: []float64{math.NaN(), math.Inf(-1), math.NaN()}, want: []int64{3, 2}, best: 2},
		{name: "the best is the newest", options: checkpoint.Options{Keep: 2, Metric: "loss"}, losses: []float64{3, 2, 1}, want: []int64{3, 2}, best: 3},
		{name: "no such metric", options: checkpoint.Options{Keep: 1, Metric: "accuracy"}, losses: []float64{3, 2, 1}, want: []int64{3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := open(t, tt.options)
			s := take(t, allTypes(t))
			for i, loss := range tt.losses {
				s.Step, s.Metrics["loss"] = int64(i)+1, loss
				ok(t, dir.Save(s))
			}
			steps(t, dir, tt.want...)
			if tt.options.Metric == "" {
				return
			}
			best, err := dir.Best(nil)
			ok(t, err)
			if tt.best == 0 && best != nil || tt.best != 0 && (best == nil || best.Step != tt.best) {
				t.Errorf("the best is %+v, want step %d", best, tt.best)
			}
		})
	}
}

// TestKeepLeavesOthersAlone checks that only this package's own checkpoints are removed.
func TestKeepLeavesOthersAlone(t *testing.T) {
	dir := open(t, checkpoint.Options{Keep: 1})
	s := take(t, allTypes(t))
	elsewhere := filepath.Join(t.TempDir(), "step-00000003")
	for s.Step = 1; s.Step <= 3; s.Step++ {
		ok(t, dir.Save(s))
	}
	ok(t, os.Rename(filepath.Join(dir.Path(), folder.Name(3)), elsewhere), os.Symlink(elsewhere, filepath.Join(dir.Path(), folder.Name(3))))
	for _, step := range []int64{1, 2} {
		ok(t, os.Mkdir(filepath.Join(dir.Path(), folder.Name(step)), 0o777))
	}
	ok(t, os.WriteFile(filepath.Join(dir.Path(), folder.Name(2), "checkpoint.json"), newerManifest(t), 0o666))
	for s.Step = 4; s.Step <= 6; s.Step++ {
		ok(t, dir.Save(s))
	}
	steps(t, dir, 6, 3, 2, 1)
	if _, err := checkpoint.Read(elsewhere); err != nil {
		t.Error(err)
	}
}

func TestOlderStepAgain(t *testing.T) {
	dir := open(t, checkpoint.Options{Keep: 1})
	s := take(t, allTypes(t))
	for _, s.Step = range []int64{9, 3, 4} { // A run resumed from an older checkpoint: the one just saved stays.
		ok(t, dir.Save(s))
		all, err := checkpoint.List(dir.Path())
		ok(t, err)
		found := false
		for _, info := range all {
			found = found || info.Step == s.Step
		}
		if !found {
			t.Errorf("step %d was saved and is gone", s.Step)
		}
	}
}

func TestNone(t *testing.T) {
	dir := open(t, checkpoint.Options{Metric: "loss"})
	for name, read := range map[string]func(func(string)) (*checkpoint.Snapshot, error){"latest": dir.Latest, "best": dir.Best} {
		if s, err := read(nil); s != nil || err != nil {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	if all, err := checkpoint.List(filepath.Join(dir.Path(), "not there")); all != nil || err != nil {
		t.Errorf("a folder that isn't there has %+v, %v", all, err)
	}
}

func TestOptions(t *testing.T) {
	tests := []struct {
		name, path, want string
		options          checkpoint.Options
	}{
		{name: "keep", path: "x", options: checkpoint.Options{Keep: -1}, want: "keep -1 checkpoints"},
		{name: "mode", path: "x", options: checkpoint.Options{Mode: "least"}, want: `mode "least"`},
		{name: "path", want: "no folder"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := checkpoint.Open(tt.path, tt.options)
			contains(t, err, tt.want)
		})
	}
	_, err := open(t, checkpoint.Options{}).Best(nil)
	contains(t, err, "set Options.Metric")
}
