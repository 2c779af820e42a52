package result_test

import (
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"

	"gonbatch/checkpoint/folder"
	"gonbatch/internal/rundir"
	"gonbatch/kernel/display"
	"gonbatch/submit/result"
)

// gonum/plot can draw a Series.
var _ plotter.XYer = result.Series(nil)

// newRun creates a run directory with these files.
func newRun(t *testing.T, files map[string]string) result.Run {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "mnist-1")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return result.At(dir)
}

const metrics = `{"step":1,"train/loss":2}
{"step":2,"train/loss":0.5,"val/loss":1}
{"step":3,"train/loss":"NaN","val/loss":1.5}
`

func TestMetrics(t *testing.T) {
	r := newRun(t, map[string]string{"metrics.jsonl": metrics})
	if got := r.Last("val/loss"); got != 1.5 {
		t.Errorf("the last val/loss is %v", got)
	}
	if got := r.Series("val/loss"); !slices.Equal(got, result.Series{{Step: 2, Value: 1}, {Step: 3, Value: 1.5}}) || !slices.Equal(got.Values(), []float64{1, 1.5}) {
		t.Errorf("the series of val/loss is %v", got)
	}
	if x, y := r.Series("train/loss").XY(1); x != 2 || y != 0.5 {
		t.Errorf("the second point is %v, %v", x, y)
	}
	if got := len(r.Metrics()); got != 3 || !math.IsNaN(r.Latest()["train/loss"]) {
		t.Errorf("%d measurements, the newest %v", got, r.Latest())
	}
	tests := []struct {
		name    string
		largest bool
		want    result.Point
	}{
		{"train/loss", false, result.Point{Step: 2, Value: 0.5}},
		{"train/loss", true, result.Point{Step: 1, Value: 2}},
		{"val/loss", false, result.Point{Step: 2, Value: 1}},
	}
	for _, tt := range tests {
		if got := r.Best(tt.name, tt.largest); got != tt.want {
			t.Errorf("Best(%s, %v) is %v, want %v", tt.name, tt.largest, got, tt.want)
		}
	}
}

// TestCheckpoints: Checkpoint returns the usable checkpoint that was written last.
func TestCheckpoints(t *testing.T) {
	r := newRun(t, map[string]string{"checkpoints/train/step-00000009/checkpoint.json": "{"})
	root := filepath.Join(r.Dir(), "checkpoints", "train")
	for _, step := range []int64{2, 3} {
		d, err := folder.NewDraft(root, step)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Commit(folder.Manifest{Step: step}); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Checkpoint(); got.Step != 3 || got.Path != filepath.Join(root, "step-00000003") {
		t.Errorf("the newest checkpoint is %+v", got)
	}
	if all := r.Checkpoints(); len(all) != 3 || all[0].Err == nil {
		t.Errorf("checkpoints %+v", all)
	}
}

// TestImages: Images returns the images in the curves folder, and those that cells have shown.
func TestImages(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte("PNG"))
	r := newRun(t, map[string]string{
		"curves/loss.png": "LOSS", "curves/images/samples/step-00000005.svg": "<svg/>",
		"executed.ipynb": fmt.Sprintf(`{"cells":[{"cell_type":"markdown"},{"outputs":[{"text":"x"},{"data":{"image/png":[%q,"\n"],"text/plain":"p"}},{"data":{"image/svg+xml":"<svg>"}},{"data":{"image/png":"%%"}}]}]}`, png),
	})
	want := []string{"images/samples/step-00000005 image/svg+xml <svg/>", "loss image/png LOSS", "cell 2 image/png PNG", "cell 2 image/svg+xml <svg>"}
	var got []string
	for _, image := range r.Images() {
		got = append(got, fmt.Sprintf("%s %s %s", image.Name, image.Type, image.Data))
	}
	if !slices.Equal(got, want) {
		t.Errorf("images %q, want %q", got, want)
	}
	bundle := display.Of(r.Image("cell 2"))
	if bundle[display.PNG] != png {
		t.Errorf("the image is shown as %v", bundle)
	}
	if bundle = display.Of(r.Image("images/samples/step-00000005")); bundle[display.SVG] != "<svg/>" {
		t.Errorf("the drawing is shown as %v", bundle)
	}
}

func TestRun(t *testing.T) {
	r := newRun(t, map[string]string{"metrics.jsonl": `{"step":1,"<b>":0.25}` + "\n", "logs/rank-1.log": "hello\n", "manifest.json": `{"format":1,"state":"completed"}`})
	if r.Name() != "mnist-1" || r.Log(1) != "hello\n" || r.Manifest().State != "completed" || !strings.Contains(r.String(), "run mnist-1 in /") {
		t.Errorf("%s: log %q, manifest %+v", r, r.Log(1), r.Manifest())
	}
	bundle := display.Of(r)
	if bundle[display.Text] != "run mnist-1\n<b>: 0.25" || !strings.Contains(bundle[display.HTML].(string), "&lt;b&gt;") {
		t.Errorf("shown as %v", bundle)
	}
}

// TestCurrent: a program of a job finds its run; a session has none.
func TestCurrent(t *testing.T) {
	t.Setenv(rundir.EnvDir, "")
	if r, ok := result.Current(); ok {
		t.Errorf("outside a job, the run is %s", r)
	}
	want := newRun(t, map[string]string{"metrics.jsonl": metrics})
	t.Setenv(rundir.EnvDir, want.Dir())
	if r, ok := result.Current(); !ok || r.Dir() != want.Dir() || r.Last("val/loss") != 1.5 {
		t.Errorf("in a job of %s, the run is %s", want, r)
	}
}

// TestPanics: the message names the missing result and the existing ones.
func TestPanics(t *testing.T) {
	r := newRun(t, map[string]string{"metrics.jsonl": metrics, "curves/loss.png": "", "executed.ipynb": "{}"})
	empty := newRun(t, map[string]string{"x": ""})
	broken := newRun(t, map[string]string{"executed.ipynb": "{"})
	gone := result.At("/nowhere/run")
	tests := []struct {
		name string
		do   func()
		want string
	}{
		{"a metric", func() { r.Last("acc") }, `the run mnist-1 has no metric "acc", only train/loss, val/loss`},
		{"a series", func() { r.Series("acc") }, `no metric "acc"`},
		{"no metrics", func() { empty.Last("acc") }, "the run mnist-1 has no metric yet"},
		{"an image", func() { r.Image("acc") }, `no image "acc", only ["loss"]`},
		{"a checkpoint", func() { r.Checkpoint() }, "the run mnist-1 has no checkpoint"},
		{"a log", func() { r.Log(7) }, "logs/rank-7.log"},
		{"a manifest", func() { empty.Manifest() }, "manifest.json"},
		{"a broken notebook", func() { broken.Images() }, "executed.ipynb"},
		{"a run that is gone", func() { gone.Metrics() }, "/nowhere/run"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.HasPrefix(got, "result: ") || !strings.Contains(got, tt.want) {
					t.Errorf("panic %s, want %s", got, tt.want)
				}
			}()
			tt.do()
		})
	}
}

func ExampleRun_Best() {
	dir, err := os.MkdirTemp("", "run-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	if err := os.WriteFile(rundir.At(dir).Metrics(), []byte(metrics), 0o644); err != nil {
		panic(err)
	}
	best := result.At(dir).Best("val/loss", false)
	fmt.Printf("%g after step %d\n", best.Value, best.Step)
	// Output: 1 after step 2
}
