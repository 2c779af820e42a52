package report

import (
	"fmt"
	"io"
	"slices"

	"gonbatch/internal/forecast"
	"gonbatch/internal/plural"
)

// Forecast is what a training step of a notebook takes on GPUs.
type Forecast struct {
	// Cell is the name of the cell that trains.
	Cell  string         `json:"cell"`
	World forecast.World `json:"world"`
	// GPU is the maker's name of the target, Origin says where its figures come from.
	GPU    string `json:"gpu"`
	Origin string `json:"origin"`
	// Capacity is the GPU's memory, Usable what XLA takes of it, in bytes.
	Capacity int64           `json:"capacity"`
	Usable   int64           `json:"usable"`
	Answer   forecast.Answer `json:"step"`
	// Floor is the time that a step can't be faster than, in seconds.
	Floor forecast.Floor `json:"floor"`
	Fits  bool           `json:"fits"`
	// Largest is the largest batch that fits where the notebook's doesn't; 0 is not known, or none.
	Largest int `json:"largest,omitempty"`
}

// Refused is why a job would fail; nil if the step fits.
func (f Forecast) Refused() error {
	if f.Fits {
		return nil
	}
	fix := "use GPUs with more memory, or a smaller model: not even one example a GPU fits"
	switch {
	case f.Largest > 0:
		fix = fmt.Sprintf("the largest batch that fits is %d", f.Largest)
	case f.Answer.Batch == 0:
		fix = "use a smaller batch: gonbatch can't look for one, since the program does not load its batches with World.Loader"
	}
	return fmt.Errorf("the training step of cell %s does not fit: it needs %s of the %s that XLA takes of one %s; %s",
		f.Cell, size(f.Answer.Memory.Total), size(f.Usable), f.GPU, fix)
}

// Text prints the forecast.
func (f Forecast) Text(w io.Writer) error {
	a := f.Answer
	m := a.Memory
	rows := [][]string{
		{"memory", fmt.Sprintf("%s of the %s that XLA takes of one %s", size(m.Total), size(f.Usable), f.GPU)},
		{"- parameters", size(m.Parameters)},
		{"- optimizer", size(m.Optimizer)},
		{"- batch", size(m.Batch)},
		{"- copies", size(m.Copies)},
		{"- activations", size(m.Activations)},
		{"computes", scaled(a.FLOPs, "FLOP")},
		{"moves", size(a.BytesMoved)},
		{"reduces", fmt.Sprintf("%s by %s", size(a.Reduced), plural.Of(len(a.Collectives), "collective"))},
		{"time", fmt.Sprintf("at least %s: %s to compute, %s to move, %s to reduce", duration(f.Floor.Step), duration(f.Floor.Compute), duration(f.Floor.Memory), duration(f.Floor.Network))},
		{"figures", f.Origin},
	}
	if len(a.Collectives) == 0 {
		rows = slices.DeleteFunc(rows, func(row []string) bool { return row[0] == "reduces" })
	}
	title := fmt.Sprintf("each GPU of %s, in a training step of %s", f.World, f.Cell)
	if a.Batch > 0 {
		title += fmt.Sprintf(" with a batch of %d (%d a GPU)", a.Batch, a.Batch/f.World.Ranks())
	}
	return table(w, title, rows)
}

// scaled is a number of things, in thousands of thousands.
func scaled(n float64, unit string) string {
	prefixes := []string{"", "K", "M", "G", "T", "P", "E"}
	i := 0
	for ; n >= 1000 && i < len(prefixes)-1; i++ {
		n /= 1000
	}
	return fmt.Sprintf("%.3g %s%s", n, prefixes[i], unit)
}

// size is a number of bytes, in the units by which GPUs are named.
func size(n int64) string {
	switch {
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// duration is a number of seconds.
func duration(seconds float64) string {
	if seconds < 1e-3 {
		return fmt.Sprintf("%.3g µs", 1e6*seconds)
	}
	return fmt.Sprintf("%.3g ms", 1e3*seconds)
}
