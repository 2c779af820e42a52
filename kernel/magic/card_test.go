package magic

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/kernel/cell"
	"gonbatch/submit/report"
)

// writeRun writes the files of a run directory.
func writeRun(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// observed returns the state of a run with the submit command's report.
func observed(dir string, status report.Run) state {
	o := New(Options{}).observe(Job{ID: "7", Dir: dir})
	s := state{Job: o.job, Run: status}
	o.lookInside(&s)
	return s
}

// TestCard: a card shows the state, the progress, the last metrics and the end of the log, and
// escapes the programs' output.
func TestCard(t *testing.T) {
	dir := t.TempDir()
	writeRun(t, dir, map[string]string{
		"metrics.jsonl": `{"step":1,"epoch":0.5,"train/loss":2,"time":"2026-11-21T10:00:00Z"}` + "\n" +
			`{"step":2,"epoch":1,"train/loss":1.5,"acc":"NaN"}` + "\n" + `{"step":3,"tr`,
		"logs/rank-0.log": strings.Repeat("old\n", 2000) + "epoch 1/1  step 2/4  loss 1.5000  77 examples/s  3s left\nbar 1\rbar 2\n<b>last</b>\n",
	})
	s := observed(dir, report.Run{Run: "mnist-1", State: "running", Message: "running on n[1-2]", Restarts: 1, Cells: report.Cells{All: 2, Finished: 1}})
	if s.ended() || s.Step != 2 || len(s.Losses) != 1 || !slices.Equal(s.Losses[0].Points, []point{{1, 2}, {2, 1.5}}) {
		t.Errorf("state %+v", s)
	}
	card := newCard(s)
	want := "job 7: running on n[1-2]\ncells: 1 of 2 finished, restarts: 1\n" +
		"[###############---------------] epoch 1/1  step 2/4  3s left\nstep 2, acc NaN, train/loss 1.5\n" +
		strings.Repeat("| old\n", 5) + "| epoch 1/1  step 2/4  loss 1.5000  77 examples/s  3s left\n| bar 2\n| <b>last</b>\n" +
		"%cancel 7 ends the job\n" + dir
	if card["text/plain"] != want {
		t.Errorf("text\n%s\nwant\n%s", card["text/plain"], want)
	}
	html := card["text/html"].(string)
	for _, want := range []string{"<svg", "56.0,8.0 656.0,138.0", "&lt;b&gt;last", "train/loss", "width:50.0%"} {
		if !strings.Contains(html, want) {
			t.Errorf("HTML %s lacks %s", html, want)
		}
	}
}

// TestCardOfAFailure: the submit command's description of a failure contains the end of the log,
// which is not shown twice.
func TestCardOfAFailure(t *testing.T) {
	dir := t.TempDir()
	writeRun(t, dir, map[string]string{"logs/rank-0.log": "begins\npanic: no\n"})
	tests := []struct {
		name, reason string
		logged       bool
		explanation  string
	}{
		{name: "with the log", reason: "job 7 (mnist): failed\nlast lines:\n  begins\n  panic: no", explanation: "job 7 (mnist): failed\nlast lines:\n  begins\n  panic: no"},
		{name: "without", reason: "the node was lost", logged: true, explanation: "job 7: the node was lost"},
		{name: "no reason", logged: true, explanation: "job 7: failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := observed(dir, report.Run{State: "failed", Message: "failed", Ended: true, Failure: tt.reason})
			if got := strings.Contains(textCard(s), "| panic: no"); got != tt.logged {
				t.Errorf("the log is in the card: %v, want %v:\n%s", got, tt.logged, textCard(s))
			}
			if got := strings.Count(htmlCard(s), "panic: no"); got != 1 {
				t.Errorf("the HTML has the log's end %d times", got)
			}
			if s.explanation() != tt.explanation {
				t.Errorf("explanation %q, want %q", s.explanation(), tt.explanation)
			}
		})
	}
}

func TestLogReader(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rank-0.log")
	l := logReader{file: file}
	steps := []struct {
		name, text string
		want       []string
		progress   int64
	}{
		{name: "no file"},
		{name: "a line and a half", text: "a\nstep 1/", want: []string{"a", "step 1/"}},
		{name: "the rest", text: "a\nstep 1/9 of 1\nb\n", want: []string{"a", "step 1/9 of 1", "b"}, progress: 1},
		{name: "started again", text: "c\n", want: []string{"c"}},
		{name: "long", text: "c\nstep 2/9\n" + strings.Repeat("x", 3<<20) + "\nstep 3/9\nend\n", want: []string{strings.Repeat("x", lineBytes) + " …", "step 3/9", "end"}, progress: 3},
		{name: "no UTF-8", text: "\xff\n", want: []string{"\uFFFD"}},
	}
	for _, step := range steps {
		if step.text != "" {
			if err := os.WriteFile(file, []byte(step.text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		l.read()
		got := l.tail()
		if step.name == "long" {
			got = got[max(0, len(got)-len(step.want)):]
		}
		if !slices.Equal(got, step.want) || l.progress.Done != step.progress {
			t.Errorf("%s: %.200q, progress %v; want %.200q, %d", step.name, got, l.progress, step.want, step.progress)
		}
	}
}

func TestDraw(t *testing.T) {
	line := func(values ...float64) []point {
		var points []point
		for i, v := range values {
			points = append(points, point{float64(i + 1), v})
		}
		return points
	}
	tests := []struct {
		name string
		all  []series
		want []string
	}{
		{name: "nothing"},
		{name: "linear", all: []series{{"train/loss", line(2, 1)}}, want: []string{">2<", ">1.5<", ">1<", "56.0,8.0 656.0,138.0"}},
		{name: "logarithmic", all: []series{{"train/loss", line(10, 1, 0.1)}}, want: []string{">10<", ">1<", ">0.1<", "356.0,73.0"}},
		{name: "below zero", all: []series{{"train/loss", line(100, -100)}}, want: []string{">100<", ">0<", ">-100<"}},
		{name: "constant", all: []series{{"train/loss", line(1, 1, 1)}}, want: []string{">1.5<", "356.0,73.0"}},
		{name: "two", all: []series{{"train/loss", line(2, 1)}, {"val/<loss>", line(3, 2)}}, want: []string{chartColors[1], "val/&lt;loss&gt;", ">3<"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := draw(tt.all)
			if (text == "") != (tt.want == nil) {
				t.Errorf("drew %q", text)
			}
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s lacks %s", text, want)
				}
			}
		})
	}
}

func TestLosses(t *testing.T) {
	var all []rundir.Measurement
	for step := range int64(3) {
		all = append(all, rundir.Measurement{Step: step, Values: map[string]float64{
			"train/d_loss": 1, "val/loss": 2, "train/loss": 3, "loss_scale/x": 4, "epoch": 5, "test/Loss": 6, "z_loss": 7,
		}})
	}
	all = append(all, rundir.Measurement{Step: 9, Values: map[string]float64{"once_loss": 1}})
	var names []string
	for _, s := range losses(all) {
		names = append(names, s.Name)
	}
	if want := []string{"train/d_loss", "train/loss", "val/loss", "test/Loss"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// TestResult: a run's metrics, checkpoints and images are returned as JSON and, with a name, as a
// Go value.
func TestResult(t *testing.T) {
	m, dir := newMagics(t, "completed")
	run := filepath.Join(dir, "run")
	writeRun(t, run, map[string]string{
		"metrics.jsonl": `{"step":1,"train/loss":1}` + "\n" + `{"step":2,"train/loss":0.5,"acc":"NaN"}` + "\n", "curves/loss.png": "",
		"checkpoints/train/step-00000002/checkpoint.json": "{}",
	})
	s := &small{}
	if err := m.Run(context.Background(), s, cell.Magic{Name: "result", Args: "7 as run"}); err != nil {
		t.Fatal(err)
	}
	want := "new gonbatch-result-7-1 job 7: running\nstep 2\nacc NaN\ntrain/loss 0.5\ncheckpoint: " + run + "/checkpoints/train/step-00000002\n" +
		"image: " + run + "/curves/loss.png\nrun directory: " + run + "\nin Go: run.Last("
	if len(s.cards) != 1 || !strings.HasPrefix(s.cards[0], want) {
		t.Errorf("%q, want %q", s.cards, want)
	}
	if want := `gonbatch__result "gonbatch/submit/result"; var run = gonbatch__result.At("` + run + `")`; len(s.declared) != 1 || s.declared[0] != want {
		t.Errorf("declared %q, want %q", s.declared, want)
	}
	found, err := readResult(state{Job: Job{ID: "7", Dir: run}, Metrics: map[string]float64{"a": 1}})
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := found.bundle("run")
	if err != nil {
		t.Fatal(err)
	}
	if html := bundle["text/html"].(string); !strings.Contains(html, ">checkpoints/train/step-00000002<") || !strings.Contains(html, "run.Images()") {
		t.Errorf("HTML %s", html)
	}
	if text, err := json.Marshal(bundle[resultType]); err != nil || !strings.Contains(string(text), `{"version":1,"job":"7",`) || !strings.Contains(string(text), `"images":["`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestManyPaths: if there are too many files, the last ones are shown.
func TestManyPaths(t *testing.T) {
	var paths []string
	for i := range 100 {
		paths = append(paths, fmt.Sprintf("/run/<%02d>", i))
	}
	html := htmlPaths("images", "/run", paths)
	if strings.Contains(html, "79&gt;") || !strings.Contains(html, ">&lt;80&gt;<") || !strings.Contains(html, "the last 20 of 100") {
		t.Error(html)
	}
}

// TestUnansweredCard: while the scheduler doesn't answer, the card of a job says why.
func TestUnansweredCard(t *testing.T) {
	m, _ := newMagics(t, "completed")
	s := &small{}
	if err := m.Run(t.Context(), s, cell.Magic{Name: "wait", Args: "88"}); err != nil {
		t.Fatal(err)
	}
	s.locked(func() {
		if !slices.ContainsFunc(s.cards, func(card string) bool {
			return strings.HasPrefix(card, "same ") && strings.Contains(card, "unknown: late")
		}) {
			t.Errorf("the cards are %q", s.cards)
		}
	})
}
