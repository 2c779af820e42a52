package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// loaderTable compares loaders at one task. The first contender is gonbatch.
type loaderTable struct {
	Title string      `json:"title"`
	Rows  []loaderRow `json:"rows"`

	contenders []contender
	cores      int
	times      int // Steps, as a multiple of the benchmark's.
	shows      loaderColumn
}

// loaderRow has the measurements of all contenders at one setting.
type loaderRow struct {
	Name  string                   `json:"name"`
	Found map[string][]measurement `json:"found"`

	args []string
}

// loaderColumn is what a table shows of a measurement.
type loaderColumn struct {
	name   string
	format string
	value  func(measurement) float64
	speed  bool // The table shows how many times as fast gonbatch is.
}

var (
	imagesPerSecond = loaderColumn{"images/s", "%.0f", func(m measurement) float64 { return m.ImagesPerSecond }, true}
	deviceIdle      = loaderColumn{"device idle", "%.2f %%", func(m measurement) float64 { return 100 * m.DataWait }, false}
	peakMemory      = loaderColumn{"peak memory", "%.0f MB", func(m measurement) float64 { return m.PeakMB }, false}
)

// stepAlone are the arguments of a training step whose dataset doesn't wait.
var stepAlone = []string{"--what=step", "--wait=0ms", "--workers=0"}

// waitShare is how long a dataset waits for which loading is cheaper than a step, as a share of
// gonbatch's step.
const waitShare = 0.6

// loaderTables returns what is measured, if gonbatch's step takes so long.
func loaderTables(ours, torch contender, step time.Duration) []loaderTable {
	wait := fmt.Sprintf("%.1f", waitShare*1000*step.Seconds())
	named := func(name string, args ...string) contender {
		c := torch.with(args...)
		c.name = name
		return c
	}
	loader := named("PyTorch DataLoader")
	return []loaderTable{
		{
			Title: "A training step of the MNIST network on one core, with a dataset that only waits for 50 ms in each\nbatch. The first row is the step alone, with a dataset that doesn't wait.",
			Rows:  append([]loaderRow{{Name: "the step alone", args: stepAlone}}, byWorkers(2, "--what=step", "--wait=50ms")...),
			cores: 1, times: 1, shows: imagesPerSecond, contenders: []contender{ours, loader},
		},
		{
			Title: fmt.Sprintf("JPEGs of %dx%d, decoded and scaled to 224x224 on two cores. A worker of PyTorch is a process that\ndecodes a batch on one core; gonbatch decodes the images of a batch on all cores, even without\nworkers. Pillow is what torchvision's ImageFolder decodes and scales with. After simplejpeg and\ntorchvision's own decoder, PyTorch scales the bytes by its vector instructions.", photoWidth, photoHeight),
			Rows:  byWorkers(2, "--what=jpeg"), cores: 2, times: 1, shows: imagesPerSecond,
			contenders: []contender{ours, named("Pillow", "--decoder=pillow"), named("simplejpeg", "--decoder=simplejpeg"), named("torchvision", "--decoder=torchvision")},
		},
		{
			Title: fmt.Sprintf("The share of the time in which the device waits for batches: training steps of the MNIST network on\none core, and a dataset that waits for %s ms in each batch, %.0f %% of gonbatch's step. For gonbatch,\nit is the trainer's metric train/data_wait.", wait, 100*waitShare),
			Rows:  byWorkers(2, "--what=fit", "--wait="+wait+"ms"), cores: 1, times: 1, shows: deviceIdle, contenders: []contender{ours, loader},
		},
		{
			Title: "The memory of a process that loads 1,000,000,000 shuffled examples, of which it reads the first\nbatches. It includes XLA. (PyTorch's RandomSampler would need more than 8 GB: it lists all numbers.)",
			Rows:  []loaderRow{{Name: "a dataset with an index", args: []string{"--what=indexed", "--workers=2"}}, {Name: "a stream with a shuffle buffer of 10,000", args: []string{"--what=stream", "--workers=2"}}},
			cores: 1, times: 100, shows: peakMemory, contenders: []contender{ours},
		},
	}
}

// byWorkers returns rows for 0 workers to most.
func byWorkers(most int, args ...string) (rows []loaderRow) {
	for workers := range most + 1 {
		name := fmt.Sprint(workers, " workers")
		if workers == 1 {
			name = "1 worker"
		}
		rows = append(rows, loaderRow{Name: name, args: append(args[:len(args):len(args)], fmt.Sprint("--workers=", workers))})
	}
	return rows
}

// round measures each row once by each contender.
func (t *loaderTable) round(ctx context.Context, cores []int, opts options, out io.Writer) error {
	opts.steps *= t.times
	for i := range t.Rows {
		row := &t.Rows[i]
		if row.Found == nil {
			row.Found = map[string][]measurement{}
		}
		for _, c := range t.contenders {
			m, err := c.with(row.args...).measure(ctx, cores[:t.cores], opts)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s: %-20s %8.1f images/s, "+t.shows.format+" %s\n", strings.Join(row.args, " "), c.name, m.ImagesPerSecond, t.shows.value(m), t.shows.name)
			row.Found[c.name] = append(row.Found[c.name], m)
		}
	}
	return nil
}

// write writes the medians as a table.
func (t loaderTable) write(b *strings.Builder) {
	head, line := "|", "|---"
	for i, c := range t.contenders {
		head, line = head+" | "+strings.TrimSpace(c.name+" "+t.Rows[0].Found[c.name][0].Version)+", "+t.shows.name, line+"|--:"
		if i > 0 && t.shows.speed {
			head, line = head+" | gonbatch is", line+"|--:"
		}
	}
	fmt.Fprintf(b, "\n%s\n\n%s |\n%s|\n", t.Title, head, line)
	for _, row := range t.Rows {
		fmt.Fprintf(b, "| %s", row.Name)
		ours := median(row.Found[t.contenders[0].name], t.shows.value)
		for i, c := range t.contenders {
			value := median(row.Found[c.name], t.shows.value)
			fmt.Fprintf(b, " | "+t.shows.format, value)
			if i > 0 && t.shows.speed {
				fmt.Fprintf(b, " | %.2f x", ours/value)
			}
		}
		b.WriteString(" |\n")
	}
}
