package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"golang.org/x/sys/unix"

	"gonbatch/checkpoint"
)

// The tensors of the benchmark: 80 square ones, 500 MB in total.
const (
	checkpointTensors = 80
	checkpointSide    = 1250
)

// checkpointReport is the result of measureCheckpoints.
type checkpointReport struct {
	CPU    string          `json:"cpu"`
	Load   string          `json:"load_average_before"`
	Bytes  int64           `json:"bytes"`
	Rounds int             `json:"rounds"`
	Rows   []checkpointRow `json:"rows"`
}

// checkpointRow is one way to do one thing. The first row of each thing is gonbatch's.
type checkpointRow struct {
	What    string    `json:"what"`
	Name    string    `json:"name"`
	Seconds float64   `json:"seconds"`
	All     []float64 `json:"all_seconds"`
}

// torchCheckpoint is what bench/peers/pytorch_checkpoint.py prints.
type torchCheckpoint struct {
	Version            string  `json:"version"`
	SafetensorsVersion string  `json:"safetensors_version"`
	CopyFirst          float64 `json:"copy_first"`
	Copy               float64 `json:"copy"`
	TorchSave          float64 `json:"torch_save"`
	TorchLoad          float64 `json:"torch_load"`
	SafetensorsSave    float64 `json:"safetensors_save"`
	SafetensorsLoad    float64 `json:"safetensors_load"`
}

// measureCheckpoints makes gonbatch and PyTorch take turns with the same tensors, on the same disk.
func measureCheckpoints(ctx context.Context, opts options, out io.Writer) (_ checkpointReport, err error) {
	report := checkpointReport{CPU: cpuModel(), Load: loadAverage(), Bytes: 4 * checkpointTensors * checkpointSide * checkpointSide, Rounds: opts.rounds}
	dir, err := os.MkdirTemp(".cache", "bench-checkpoint-") // On disk, like the results of a training run, not in memory.
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := checkpointStore()
	if err != nil {
		return report, err
	}
	for round := range opts.rounds {
		var rows []checkpointRow
		if rows, err = ownCheckpoint(store, filepath.Join(dir, "ours")); err != nil {
			return report, err
		}
		theirs, err := peerCheckpoint(ctx, dir)
		if err != nil {
			return report, err
		}
		report.add(append(rows, theirs...))
		fmt.Fprintf(out, "checkpoint, round %d: save %.2f s\n", round+1, rows[2].Seconds)
	}
	return report, nil
}

func checkpointStore() (*model.Store, error) {
	store := model.NewStore()
	for i := range checkpointTensors {
		t := tensors.FromShape(shapes.Make(dtypes.Float32, checkpointSide, checkpointSide))
		err := tensors.MutableFlatData(t, func(data []float32) {
			for k := range data {
				data[k] = float32(k) * float32(i+1)
			}
		})
		if err != nil {
			return nil, err
		}
		if _, err := store.CreateVariable(fmt.Sprintf("/tensor_%d", i), t); err != nil {
			return nil, err
		}
	}
	return store, nil
}

const (
	copyFirst  = "the first copy"
	copyLater  = "each later copy"
	saveToDisk = "save to disk"
	load       = "load"
)

// ownCheckpoint measures gonbatch. The times include hashing on save, and comparing the hashes on
// load.
func ownCheckpoint(store *model.Store, path string) (rows []checkpointRow, err error) {
	dir, err := checkpoint.Open(path, checkpoint.Options{Keep: 1})
	if err != nil {
		return nil, err
	}
	w := checkpoint.NewWriter(dir)
	defer func() { err = errors.Join(err, w.Close(), os.RemoveAll(path)) }()
	var s *checkpoint.Snapshot
	taking := func() (err error) { s, err = w.Take(store, nil); return err }
	saving := func() error { return errors.Join(w.Save(s), w.Wait()) }
	reading := func() error { _, err := dir.Latest(nil); return err }
	for _, step := range []struct {
		what string
		do   func() error
	}{{copyFirst, taking}, {saveToDisk, saving}, {copyLater, taking}, {load, reading}} {
		unix.Sync()
		start := time.Now()
		if err := step.do(); err != nil {
			return rows, err
		}
		rows = append(rows, checkpointRow{What: step.what, Name: "gonbatch", Seconds: time.Since(start).Seconds()})
	}
	rows[1], rows[2] = rows[2], rows[1] // Both copies are adjacent in the table.
	return rows, nil
}

func peerCheckpoint(ctx context.Context, dir string) ([]checkpointRow, error) {
	python := filepath.Join(".cache", "bench-venv", "bin", "python")
	out, err := exec.CommandContext(ctx, python, "bench/peers/pytorch_checkpoint.py", "--tensors="+strconv.Itoa(checkpointTensors),
		"--side="+strconv.Itoa(checkpointSide), dir).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w\n%s", err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("pytorch_checkpoint.py: %w: run tests/setup.sh bench", err)
	}
	var m torchCheckpoint
	if err := json.Unmarshal(out, &m); err != nil {
		return nil, fmt.Errorf("pytorch_checkpoint.py: %w\n%s", err, out)
	}
	return m.rows(), nil
}

func (m torchCheckpoint) rows() []checkpointRow {
	torch, files := "PyTorch "+m.Version, "safetensors "+m.SafetensorsVersion
	return []checkpointRow{
		{What: copyFirst, Name: torch + ", clone", Seconds: m.CopyFirst},
		{What: copyLater, Name: torch + ", copy_", Seconds: m.Copy},
		{What: saveToDisk, Name: torch + ", torch.save", Seconds: m.TorchSave},
		{What: saveToDisk, Name: files + ", save_file", Seconds: m.SafetensorsSave},
		{What: load, Name: torch + ", torch.load", Seconds: m.TorchLoad},
		{What: load, Name: files + ", load_file", Seconds: m.SafetensorsLoad},
	}
}

// add adds a round's rows to those of the earlier rounds.
func (r *checkpointReport) add(rows []checkpointRow) {
	for _, row := range rows {
		at := -1
		for i, earlier := range r.Rows {
			if earlier.What == row.What && earlier.Name == row.Name {
				at = i
			}
		}
		if at < 0 {
			at = len(r.Rows)
			r.Rows = append(r.Rows, checkpointRow{What: row.What, Name: row.Name})
		}
		known := &r.Rows[at]
		known.All = append(known.All, row.Seconds)
		known.Seconds = median(known.All, func(v float64) float64 { return v })
	}
}

// markdown returns the report as a table. The ratio says how many times as fast gonbatch is.
func (r checkpointReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Checkpoints\n\n")
	fmt.Fprintf(&b, "%d MB in %d tensors. Median of %d rounds, in which the contenders take turns. A training run waits only\n"+
		"for the copy. A saved file is on disk (fsync). gonbatch's files have a SHA-256 each, which loading\n"+
		"verifies. Files are loaded from the page cache, and every byte is read. PyTorch has one thread.\n", r.Bytes/1e6, checkpointTensors, r.Rounds)
	fmt.Fprintf(&b, "%s, load average before: %s.\n\n", r.CPU, r.Load)
	fmt.Fprintf(&b, "| | | seconds | MB/s | gonbatch is |\n|---|---|--:|--:|--:|\n")
	for _, what := range []string{copyFirst, copyLater, saveToDisk, load} {
		ours := 0.0
		for _, row := range r.Rows {
			if row.What != what {
				continue
			}
			if ours == 0 {
				ours = row.Seconds
			}
			fmt.Fprintf(&b, "| %s | %s | %.3f | %.0f | %.2f x |\n", what, row.Name, row.Seconds, float64(r.Bytes)/1e6/row.Seconds, row.Seconds/ours)
		}
	}
	return b.String()
}
