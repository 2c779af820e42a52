package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

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
		"| [gpt_ranks](../notebooks/gpt.ipynb) | val/loss 1.5 |  | 1m30s |  |\n",
		"| [cifar10_resnet18](../notebooks/cifar10_resnet18.ipynb) | not run | test/accuracy >= 0.9 |  |  |\n",
		"\n## mnist\n\n    submit --local notebooks/mnist.ipynb -- -epochs 5\n\nA CPU, 4 cores.\n\n    accuracy 0.9912, macro F1 0.99\n\n![picture 1 of mnist](images/notebooks/mnist-1.png)\n",
		"It was not run:\n\n    no route to host\n",
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

// TestPictures: the pictures of a cell's outputs, with or without line breaks.
func TestPictures(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte("a picture"))
	outputs := fmt.Sprintf(`[{"output_type": "stream", "text": "x"}, {"data": {"image/png": %q}}, {"data": {"image/png": %q}}]`, text, text[:4]+"\n"+text[4:])
	found, err := picturesOf(json.RawMessage(outputs))
	if err != nil || len(found) != 2 || string(found[0]) != "a picture" || string(found[1]) != "a picture" {
		t.Errorf("%q, %v", found, err)
	}
	if found, err := picturesOf(nil); err != nil || found != nil {
		t.Errorf("of Markdown: %q, %v", found, err)
	}
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
