package main

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"gonbatch/data/cifar10"
)

// notebook is how a notebook runs in full size.
type notebook struct {
	name  string
	file  string   // The notebook's name, if it runs in several ways.
	flags []string // Of submit.
	args  []string // After "--".
	needs func(context.Context) error
	shows *regexp.Regexp // Lines of its output that the page shows.
	whole string         // The ID of a cell whose output the page shows, all of it.
	bench string         // The workload of bench/ that stands for it.
	goals []goal

	pictures int // How many of its pictures the page shows, the last ones: mostPictures if unset.
}

// mostPictures is how many pictures of most notebooks the page shows.
const mostPictures = 2

// goal is a value that a notebook must reach.
type goal struct {
	text string
	met  func(result) bool
}

// The workloads of bench/ that stand for several notebooks, and where their results are.
const (
	step     = "[step](../bench/results/step.md)"
	cnn      = "CNN in " + step
	smallCNN = cnn + ", a larger network"
)

// notebooks are all of them, in the order in which a newcomer reads them.
var notebooks = []notebook{
	{name: "tour", bench: smallCNN, shows: lines(`^answers: `), goals: []goal{atLeast("test/accuracy", 0.95)}},
	{name: "linear_regression", bench: "none: too small to measure", shows: lines(`^weight`, `^bias`), goals: []goal{atMost("val/loss", 0.0115)}},
	{
		name: "mnist", bench: cnn + ", the same network", args: []string{"-epochs", "5"}, shows: lines(`^ *class `, `^ *\d +\d`, `^accuracy `),
		goals: []goal{atLeast("test/accuracy", 0.99)},
	},
	{
		name: "mnist_sweep", bench: smallCNN, shows: lines(`^rate `, `^the best `, `^of \d+ rates`),
		goals: []goal{atLeast("rate-1e-3 test/accuracy", 0.97)},
	},
	{name: "fashion_mnist", bench: smallCNN, shows: lines(`^images: `), goals: []goal{atLeast("test/accuracy", 0.90)}},
	{
		name: "finetune", bench: smallCNN, pictures: 3, shows: lines(`^accuracy `),
		goals: []goal{atLeast("shapes val/accuracy", 0.95), atLeast("others val/accuracy", 0.95)},
	},
	{
		name: "gan", bench: "none, but its layers are like those of the CNN in " + step, shows: lines(`^the reader's accuracy `, `^of \d+ drawn digits`, `^\d+ are the digit`),
		goals: []goal{{"the reader's mean confidence >= 0.9, 900 of 1,000 are the digit that was asked for, and each digit is there 50 times", digitsAreRead}},
	},
	{
		name: "gpt", shows: lines(`^a GPT of `), whole: "write", bench: "GPT in " + step + ", a larger model",
		goals: []goal{atMost("val/loss", 1.5)},
	},
	{name: "gpt_ranks", file: "gpt", flags: onAllCores(), shows: lines(`^a GPT of `), goals: []goal{atMost("val/loss", 1.5)}},
	{name: "data_loading", shows: lines(`images/s`, ` ms`), bench: "loader: [results](../bench/results/loader.md)"},
	{name: "inference", flags: onAllCores(), shows: lines(`^devices: `), bench: "inference: [results](../bench/results/inference.md)"},
	{
		name: "cifar10_resnet18", flags: onAllCores(), needs: cifar10Images, shows: lines(`^devices: `),
		bench: "ResNet-18 in " + step, goals: []goal{atLeast("test/accuracy", 0.9)},
	},
}

// onAllCores are the flags for a rank on each core. Their number is a power of two, which divides
// the batch sizes.
func onAllCores() []string {
	return []string{"--tasks", strconv.Itoa(1 << (bits.Len(uint(runtime.NumCPU())) - 1))}
}

// path is the notebook's file.
func (n notebook) path() string {
	return filepath.Join("notebooks", cmp.Or(n.file, n.name)+".ipynb")
}

// words is the command line of submit.
func (n notebook) words() []string {
	words := slices.Concat([]string{"--local"}, n.flags, []string{n.path()})
	if len(n.args) > 0 {
		words = append(append(words, "--"), n.args...)
	}
	return words
}

// lines matches each line that matches one of the patterns.
func lines(patterns ...string) *regexp.Regexp {
	all := ""
	for i, p := range patterns {
		if i > 0 {
			all += "|"
		}
		all += p
	}
	return regexp.MustCompile(all)
}

// atLeast is a goal for a metric.
func atLeast(metric string, least float64) goal {
	return goal{fmt.Sprintf("%s >= %g", metric, least), func(r result) bool { return r.Metrics[metric] >= least }}
}

// atMost is a goal for a metric that must be there.
func atMost(metric string, most float64) goal {
	return goal{fmt.Sprintf("%s <= %g", metric, most), func(r result) bool {
		value, measured := r.Metrics[metric]
		return measured && value <= most
	}}
}

// What the reader of gan.ipynb says of 1,000 drawn digits.
var (
	confidence = regexp.MustCompile(`mean confidence is (0\.9|1\.0)`)
	asAsked    = regexp.MustCompile(`(?m)^(9\d\d|1000) are the digit.*: \[([\d ]+)\]$`)
)

// leastOfDigit is how often each digit must be read: half as often as it was asked for.
const leastOfDigit = 50

// digitsAreRead reports whether the reader is sure of what it reads, and reads what was asked for:
// every digit.
func digitsAreRead(r result) bool {
	text := strings.Join(r.Output, "\n")
	asked := asAsked.FindStringSubmatch(text)
	if asked == nil || !confidence.MatchString(text) {
		return false
	}
	counts := strings.Fields(asked[2])
	return len(counts) == 10 && !slices.ContainsFunc(counts, func(count string) bool {
		n, err := strconv.Atoi(count)
		return err != nil || n < leastOfDigit
	})
}

// cifar10Images gets the images of CIFAR-10.
func cifar10Images(ctx context.Context) error {
	_, _, err := cifar10.Load(ctx)
	return err
}
