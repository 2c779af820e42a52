package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonbatch/internal/nbformat"
	"gonbatch/internal/rundir"
)

// TestNotebooksAreListed: every notebook of the project has its place.
func TestNotebooksAreListed(t *testing.T) {
	entries, err := os.ReadDir("../../notebooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name, isNotebook := strings.CutSuffix(entry.Name(), ".ipynb")
		if isNotebook && !slices.Contains(names(), name) {
			t.Errorf("notebooks/%s is not in the list of this command", entry.Name())
		}
	}
}

func TestPage(t *testing.T) {
	all := map[string]result{
		"mnist": {
			Command: "submit --local notebooks/mnist.ipynb -- -epochs 5", Machine: "A CPU, 4 cores", Load: "0.5", Seconds: 62.4,
			Metrics: map[string]float64{"test/accuracy": 0.9912, "test/loss": 0.0311, "train/loss": 0.01}, Output: []string{"accuracy 0.9912, macro F1 0.99"},
			Pictures: []string{"mnist-1.png"},
		},
		"fashion_mnist":    {Metrics: map[string]float64{"test/accuracy": 0.89}},
		"gpt_ranks":        {Seconds: 90, Metrics: map[string]float64{"val/loss": 1.5}},
		"cifar10_resnet18": {Command: "submit --local notebooks/cifar10_resnet18.ipynb", Skipped: "no route to host"},
	}
	got := page(all)
	for _, want := range []string{
		"| [mnist](../notebooks/mnist.ipynb) | test/accuracy 0.9912, test/loss 0.0311 | test/accuracy >= 0.99: reached | 1m2s | 0.5 |\n",
		"| [fashion_mnist](../notebooks/fashion_mnist.ipynb) | test/accuracy 0.89 | test/accuracy >= 0.9: **missed** |",
		"| [gpt_ranks](../notebooks/gpt.ipynb) | val/loss 1.5 | val/loss <= 1.5: reached | 1m30s |  |\n",
		"| [cifar10_resnet18](../notebooks/cifar10_resnet18.ipynb) | not run | test/accuracy >= 0.9 |  |  |\n",
		"\n## mnist\n\n    submit --local notebooks/mnist.ipynb -- -epochs 5\n\nA CPU, 4 cores.\n\n    accuracy 0.9912, macro F1 0.99\n\n![picture 1 of mnist](images/notebooks/mnist-1.png)\n",
		"It was not run:\n\n    no route to host\n",
		"| [mnist](../notebooks/mnist.ipynb) | CNN in [step](../bench/results/step.md), the same network |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestDigitsAreRead(t *testing.T) {
	const sure, unsure = "of 1000 drawn digits, its mean confidence is 0.953, and it is more than 90 % sure of 860", "of 1000 drawn digits, its mean confidence is 0.853, and it is more than 90 % sure of 660"
	asked := func(n int) string {
		return fmt.Sprintf("%d are the digit that was asked for; zeros to nines: [90 120 100 80 110 100 100 100 90 110]", n)
	}
	read := func(counts string) string { return "961 are the digit that was asked for; zeros to nines: " + counts }
	for _, test := range []struct {
		output []string
		want   bool
	}{
		{[]string{sure, asked(961)}, true},
		{[]string{"of 1000 drawn digits, its mean confidence is 1.000, and it is more than 90 % sure of 1000", asked(1000)}, true},
		{[]string{unsure, asked(961)}, false},
		{[]string{sure, asked(899)}, false},
		{[]string{sure, asked(99)}, false},
		{[]string{sure, read("[50 160 100 80 110 100 100 100 90 110]")}, true},
		{[]string{sure, read("[49 161 100 80 110 100 100 100 90 110]")}, false}, // Few zeros.
		{[]string{sure, read("[100 100 100 100 100 100 100 100 200 0]")}, false},
		{[]string{sure, read("[100 100 100 100 100 100 100 100 200]")}, false}, // No nines.
		{[]string{sure, read("[]")}, false},
		{[]string{sure, "961 are the digit that was asked for"}, false},
		{[]string{sure}, false},
		{nil, false},
	} {
		if got := digitsAreRead(result{Output: test.output}); got != test.want {
			t.Errorf("%q: %v", test.output, got)
		}
	}
}

// TestLast: the values count that were measured last, and can be written as JSON.
func TestLast(t *testing.T) {
	measured := []rundir.Measurement{
		{Training: "train", Values: map[string]float64{"train/loss": 2, "val/loss": 3}},
		{Training: "train", Values: map[string]float64{"train/loss": 1, "val/loss": math.NaN()}},
	}
	if got, want := last(measured), (map[string]float64{"train/loss": 1, "val/loss": 3}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	measured[1].Training = "judge"
	if got, want := last(measured), (map[string]float64{"train train/loss": 2, "train val/loss": 3, "judge train/loss": 1}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestParse reads the outputs of a cell: its text, and its pictures with or without line breaks.
func TestParse(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte("a picture"))
	outputs := fmt.Sprintf(`[{"output_type": "stream", "name": "stdout", "text": "x\ny"}, {"name": "stderr", "text": "no"},
		{"data": {"image/png": %q}}, {"data": {"image/png": %q}}, {"name": "stdout", "text": " z\n\n"}]`, text, text[:4]+"\n"+text[4:])
	var c executedCell
	if err := c.parse(json.RawMessage(outputs)); err != nil || c.text != "x\ny z\n\n" {
		t.Errorf("%q, %v", c.text, err)
	}
	if found := c.pictures; len(found) != 2 || string(found[0]) != "a picture" || string(found[1]) != "a picture" {
		t.Errorf("%q", found)
	}
	var markdown executedCell
	if err := markdown.parse(nil); err != nil || markdown.pictures != nil {
		t.Errorf("of Markdown: %q, %v", markdown.pictures, err)
	}
}

// TestPrintedBy: the lines of one cell, without spaces at their ends.
func TestPrintedBy(t *testing.T) {
	cells := []executedCell{{id: "look", text: "a\n"}, {id: "write", text: "func main() {\t\n\n\tgo\n\n"}}
	if got, want := printedBy(cells, "write"), []string{"func main() {", "", "\tgo"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := printedBy(cells, ""); got != nil {
		t.Errorf("of no cell: %q", got)
	}
}

// TestDrawnBy: the last pictures of all cells.
func TestDrawnBy(t *testing.T) {
	cells := []executedCell{{pictures: [][]byte{{1}, {2}}}, {}, {pictures: [][]byte{{3}, {4}}}}
	if got, want := drawnBy(cells, 3), [][]byte{{2}, {3}, {4}}; !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestAtMost: a metric that is missing doesn't reach a goal.
func TestAtMost(t *testing.T) {
	g := atMost("val/loss", 0.5)
	for _, test := range []struct {
		metrics map[string]float64
		want    bool
	}{{map[string]float64{"val/loss": 0.5}, true}, {map[string]float64{"val/loss": 0.6}, false}, {nil, false}} {
		if got := g.met(result{Metrics: test.metrics}); got != test.want {
			t.Errorf("%s of %v: %v", g.text, test.metrics, got)
		}
	}
}

// TestShows: the patterns match what the notebooks print, and cells to show are there.
func TestShows(t *testing.T) {
	for name, line := range map[string]string{
		"linear_regression": "bias: learned +3.001, true +3.000", "fashion_mnist": "images: the original files", "gpt": "a GPT of 806272 parameters, a text of 9 characters",
		"mnist_sweep": "rate 1e-3: val/accuracy 0.98, val/loss 0.1", "finetune": "accuracy 1.0000, macro F1 1.0000",
	} {
		if i := slices.Index(names(), name); !notebooks[i].shows.MatchString(line) {
			t.Errorf("%s doesn't show %q", name, line)
		}
	}
	for _, n := range notebooks {
		text, err := os.ReadFile(filepath.Join("..", "..", n.path()))
		if err != nil {
			t.Fatal(err)
		}
		if n.file == "" && n.bench == "" {
			t.Errorf("%s: no workload of bench/ stands for it; if none does, say why", n.name)
		}
		if n.whole != "" && !strings.Contains(string(text), fmt.Sprintf(`"id": %q`, n.whole)) {
			t.Errorf("%s has no cell %q", n.path(), n.whole)
		}
	}
}

// TestOrder: docs/tour.md and the tour list the notebooks in the order of this command.
func TestOrder(t *testing.T) {
	var want []string
	for _, n := range notebooks {
		if n.file == "" && n.name != "tour" {
			want = append(want, n.name)
		}
	}
	for page, pattern := range map[string]string{
		"docs/tour.md": `\]\(\.\./notebooks/(\w+)\.ipynb\)`, "notebooks/tour.ipynb": `\]\((\w+)\.ipynb\)`,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		listed := string(text)
		if _, list, cut := strings.Cut(listed, "\n## The notebooks\n"); cut {
			listed, _, _ = strings.Cut(list, "\n## ")
		}
		var got []string
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(listed, -1) {
			got = append(got, match[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s lists %q, want %q", page, got, want)
		}
	}
}

// TestFirstAndLastCells: the first cell says what a notebook needs and how long it takes, the last
// one links to the next notebook.
func TestFirstAndLastCells(t *testing.T) {
	var previous notebook
	for _, n := range notebooks {
		if n.file != "" {
			continue
		}
		cells := cellsOf(t, n)
		if first := cells[0].Source; !strings.Contains(first, "**You need**: ") || !strings.Contains(first, "**Time**: ") {
			t.Errorf("%s doesn't say what it needs and how long it takes:\n%s", n.path(), first)
		}
		if previous.name != "" {
			before := cellsOf(t, previous)
			if last := before[len(before)-1].Source; !strings.Contains(last, fmt.Sprintf("Next: [%s](%[1]s.ipynb)", n.name)) {
				t.Errorf("%s doesn't lead to %s:\n%s", previous.path(), n.path(), last)
			}
		}
		previous = n
	}
}

func cellsOf(t *testing.T, n notebook) []*nbformat.Cell {
	t.Helper()
	read, err := nbformat.Read(filepath.Join("..", "..", n.path()))
	if err != nil {
		t.Fatal(err)
	}
	return read.Cells
}

func TestWords(t *testing.T) {
	for _, test := range []struct {
		notebook notebook
		want     string
	}{
		{notebook{name: "tour"}, "--local notebooks/tour.ipynb"},
		{notebook{name: "gpt_ranks", file: "gpt", flags: []string{"--tasks", "4"}, args: []string{"-seed", "2"}}, "--local --tasks 4 notebooks/gpt.ipynb -- -seed 2"},
	} {
		if got := strings.Join(test.notebook.words(), " "); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}
