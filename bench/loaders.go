package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"gonbatch/data"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// loaderReport is what measureLoaders finds.
type loaderReport struct {
	CPU    string      `json:"cpu"`
	Load   string      `json:"load_average_before"`
	Batch  int         `json:"batch"`
	Steps  int         `json:"steps"`
	Rounds int         `json:"rounds"`
	Rows   []loaderRow `json:"rows"`
}

// loaderRow is one contender with a number of workers.
type loaderRow struct {
	What    string        `json:"what"`
	Workers int           `json:"workers"`
	Name    string        `json:"name"`
	Median  measurement   `json:"median"`
	Rounds  []measurement `json:"rounds"`
}

// loaderCases are what is loaded, and on how many cores. The step alone has a dataset that doesn't
// wait.
var loaderCases = []struct {
	name    string
	args    []string
	cores   int
	workers []int
}{
	{"step", []string{"--what=step", "--wait=0ms"}, 1, []int{0}},
	{"wait", []string{"--what=step", "--wait=50ms"}, 1, []int{0, 1, 2}},
	{"jpeg", []string{"--what=jpeg"}, 2, []int{0, 1, 2}},
}

// The JPEGs have the mean size of ImageNet's.
const (
	photoWidth, photoHeight = 500, 375
	photoCount              = 320
)

// measureLoaders lets the loaders take turns, on the same cores.
func measureLoaders(ctx context.Context, opts options, out io.Writer) (_ loaderReport, err error) {
	report := loaderReport{CPU: cpuModel(), Load: loadAverage(), Batch: opts.batch, Steps: opts.steps, Rounds: opts.rounds}
	available, err := cores()
	if err != nil {
		return report, err
	}
	if len(available) < 2 {
		return report, fmt.Errorf("%d core to run on, and 2 workers: use a machine with more", len(available))
	}
	folder, err := os.MkdirTemp("", "bench-load-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := writePhotos(folder); err != nil {
		return report, err
	}
	program, err := build(ctx, "./bench/load", "bench-load")
	if err != nil {
		return report, err
	}
	python := filepath.Join(".cache", "bench-venv", "bin", "python")
	both := []contender{{"gonbatch", onCores(program)}, {"PyTorch DataLoader", onCores(python, "bench/peers/dataloader.py")}}
	for range opts.rounds {
		if err := report.round(ctx, both, folder, available[:2], opts, out); err != nil {
			return report, err
		}
	}
	for i := range report.Rows {
		report.Rows[i].Median = medians(report.Rows[i].Rounds)
	}
	return report, nil
}

func (r *loaderReport) round(ctx context.Context, both []contender, folder string, cores []int, opts options, out io.Writer) error {
	row := 0
	for _, c := range loaderCases {
		for _, workers := range c.workers {
			for _, own := range both {
				m, err := own.with(append(c.args, "--folder="+folder, fmt.Sprintf("--workers=%d", workers))...).measure(ctx, cores[:c.cores], opts)
				if err != nil {
					return err
				}
				fmt.Fprintf(out, "%-5s %d workers: %-20s %8.1f images/s %8.2f ms\n", c.name, workers, own.name, m.ImagesPerSecond, m.MillisPerStep)
				if row == len(r.Rows) {
					r.Rows = append(r.Rows, loaderRow{What: c.name, Workers: workers, Name: strings.TrimSpace(own.name + " " + m.Version)})
				}
				r.Rows[row].Rounds = append(r.Rows[row].Rounds, m)
				row++
			}
		}
	}
	return nil
}

// onCores starts one process on all of the cores.
func onCores(words ...string) func(context.Context, []int, []string) ([]*exec.Cmd, error) {
	return func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		all := append([]string{"-c", strings.ReplaceAll(join(cores), " ", ",")}, append(words, args...)...)
		cmd := exec.CommandContext(ctx, "taskset", all...)
		cmd.Env = append(os.Environ(), rundir.EnvDevices+"=1", rundir.EnvPlatform+"=cpu", fmt.Sprintf("OMP_NUM_THREADS=%d", len(cores)))
		return []*exec.Cmd{cmd}, nil
	}
}

// writePhotos writes JPEGs that compress as photos do: waves with some noise.
func writePhotos(folder string) error {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range photoCount {
		photo := image.NewRGBA(image.Rect(0, 0, photoWidth, photoHeight))
		a, b := 20+60*rng.Float64(), 20+60*rng.Float64()
		for y := range photoHeight {
			for x := range photoWidth {
				wave := 100 + 80*math.Sin(float64(x)/a)*math.Cos(float64(y)/b)
				photo.SetRGBA(x, y, color.RGBA{uint8(wave + 30*rng.Float64()), uint8(wave + 20*rng.Float64()), uint8(200 - wave/2), 0xff})
			}
		}
		path := filepath.Join(folder, fmt.Sprint("class", i%2), fmt.Sprint(i, ".jpg"))
		if err := writePhoto(path, photo); err != nil {
			return err
		}
	}
	return nil
}

func writePhoto(path string, photo image.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(jpeg.Encode(file, photo, &jpeg.Options{Quality: 90}), file.Close())
}

// markdown is the report as tables.
func (r loaderReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Loading batches\n\nBatches of %d images. Median of %s of %s; the contenders take turns.\n%s, load average before: %s.%s\n",
		r.Batch, plural.Of(r.Rounds, "round"), plural.Of(r.Steps, "batch"), r.CPU, r.Load, busy(r.Load))
	titles := map[string]string{
		"wait": "A training step of the MNIST network on one core, with a dataset that only waits for 50 ms in each\nbatch. The first row is the step alone, with a dataset that doesn't wait.",
		"jpeg": fmt.Sprintf("JPEGs of %dx%d, decoded and scaled to 224x224 on two cores: by\n%s in gonbatch, by Pillow in PyTorch.\ngonbatch decodes the images of a batch on all cores, even without workers.", photoWidth, photoHeight, data.JPEGDecoder()),
	}
	for i := 0; i+1 < len(r.Rows); i += 2 {
		ours, theirs := r.Rows[i], r.Rows[i+1]
		name := plural.Of(ours.Workers, "worker")
		if ours.What == "step" {
			name = "the step alone"
		}
		if ours.What == "step" || ours.What == "jpeg" && ours.Workers == 0 {
			title := titles["wait"]
			if ours.What == "jpeg" {
				title = titles["jpeg"]
			}
			fmt.Fprintf(&b, "\n%s\n\n| | gonbatch, ms | images/s | %s, ms | images/s | gonbatch is |\n|---|--:|--:|--:|--:|--:|\n", title, theirs.Name)
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.0f | %.1f | %.0f | %.2f x |\n", name, ours.Median.MillisPerStep, ours.Median.ImagesPerSecond,
			theirs.Median.MillisPerStep, theirs.Median.ImagesPerSecond, ours.Median.ImagesPerSecond/theirs.Median.ImagesPerSecond)
	}
	return b.String()
}
