package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gonbatch/data"
	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// loaderReport is what measureLoaders finds.
type loaderReport struct {
	CPU     string        `json:"cpu"`
	Load    string        `json:"load_average_before"`
	Decoder string        `json:"jpeg_decoder"`
	Batch   int           `json:"batch"`
	Steps   int           `json:"steps"`
	Rounds  int           `json:"rounds"`
	Tables  []loaderTable `json:"tables"`
}

// measureLoaders lets the loaders take turns, on the same cores.
func measureLoaders(ctx context.Context, opts options, out io.Writer) (_ loaderReport, err error) {
	report := loaderReport{CPU: cpuModel(), Load: loadAverage(), Decoder: data.JPEGDecoder(), Batch: opts.batch, Steps: opts.steps, Rounds: opts.rounds}
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
	ours := contender{name: "gonbatch", start: onCores(program)}.with("--folder=" + folder)
	torch := contender{name: "PyTorch", start: onCores(filepath.Join(".cache", "bench-venv", "bin", "python"), "bench/peers/dataloader.py")}.with("--folder=" + folder)
	alone, err := ours.with(stepAlone...).measure(ctx, available[:1], opts)
	if err != nil {
		return report, err
	}
	report.Tables = loaderTables(ours, torch, time.Duration(float64(opts.batch)/alone.ImagesPerSecond*float64(time.Second)))
	for range opts.rounds {
		for i := range report.Tables {
			if err := report.Tables[i].round(ctx, available, opts, out); err != nil {
				return report, err
			}
		}
	}
	return report, nil
}

// onCores starts one process on all of the cores.
func onCores(words ...string) starter {
	return func(ctx context.Context, cores []int, args []string) ([]*exec.Cmd, error) {
		all := append([]string{"-c", strings.ReplaceAll(join(cores), " ", ",")}, append(words, args...)...)
		cmd := exec.CommandContext(ctx, "taskset", all...)
		cmd.Env = append(os.Environ(), rundir.EnvDevices+"=1", rundir.EnvPlatform+"=cpu", fmt.Sprintf("OMP_NUM_THREADS=%d", len(cores)))
		return []*exec.Cmd{cmd}, nil
	}
}

// markdown is the report as tables.
func (r loaderReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Loading batches\n\nBatches of %d images. Median of %s of %s; the contenders take turns.\nJPEGs in gonbatch: %s.\n%s, load average before: %s.%s\n",
		r.Batch, plural.Of(r.Rounds, "round"), plural.Of(r.Steps, "batch"), r.Decoder, r.CPU, r.Load, busy(r.Load))
	for _, t := range r.Tables {
		t.write(&b)
	}
	return b.String()
}
