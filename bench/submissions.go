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
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// The limits for submission.
const (
	limitUnchanged = 500 * time.Millisecond
	limitChanged   = 3 * time.Second
)

// submitReport is the result of measureSubmissions.
type submitReport struct {
	CPU    string      `json:"cpu"`
	Rounds int         `json:"rounds"`
	Rows   []submitRow `json:"rows"`
}

type submitRow struct {
	Name    string    `json:"name"`
	Seconds float64   `json:"seconds"`
	Limit   float64   `json:"limit_seconds,omitempty"`
	All     []float64 `json:"all_seconds"`
}

// submission submits a notebook to a cluster, repeatedly.
type submission struct {
	cluster  *cluster.Cluster
	program  string
	dir      string
	original []byte
	changes  int
}

// measureSubmissions times `submit --nodes 2`, which ends when sbatch has accepted the job.
func measureSubmissions(ctx context.Context, opts options, out io.Writer) (_ submitReport, err error) {
	report := submitReport{CPU: cpuModel(), Rounds: opts.rounds}
	program, err := build(ctx, "./cmd/submit", "bench-submit")
	if err != nil {
		return report, err
	}
	original, err := os.ReadFile(opts.notebook)
	if err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "bench-submit-")
	if err != nil {
		return report, err
	}
	c, err := cluster.Open()
	if err != nil {
		return report, errors.Join(err, os.RemoveAll(dir))
	}
	defer func() { err = errors.Join(err, c.Close(), os.RemoveAll(dir)) }()
	s := &submission{cluster: c, program: program, dir: dir, original: original}
	source, err := os.Getwd()
	if err != nil {
		return report, err
	}
	if err := s.measure(ctx, source, opts, &report, out); err != nil {
		return report, err
	}
	return report, nil
}

func (s *submission) measure(ctx context.Context, source string, opts options, report *submitReport, out io.Writer) error {
	cases := []struct {
		row     submitRow
		rounds  int
		prepare func() error
	}{
		{row: submitRow{Name: "a notebook's first time"}, rounds: 1, prepare: s.change},
		{row: submitRow{Name: "unchanged notebook", Limit: limitUnchanged.Seconds()}, rounds: opts.rounds, prepare: func() error { return nil }},
		{row: submitRow{Name: "one changed cell", Limit: limitChanged.Seconds()}, rounds: opts.rounds, prepare: s.change},
	}
	for _, c := range cases {
		for range c.rounds {
			if err := c.prepare(); err != nil {
				return err
			}
			took, err := s.submit(ctx, source)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "submit, %-24s %6.2f s\n", c.row.Name+":", took.Seconds())
			c.row.All = append(c.row.All, took.Seconds())
		}
		c.row.Seconds = median(c.row.All, func(v float64) float64 { return v })
		report.Rows = append(report.Rows, c.row)
	}
	return nil
}

// submit submits the notebook, measures the time, and cancels the job.
func (s *submission) submit(ctx context.Context, source string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, s.program, "--nodes=2", "--platform=cpu", "notebook.ipynb")
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), s.cluster.Env()...), rundir.EnvSource+"="+source)
	start := time.Now()
	text, err := cmd.CombinedOutput()
	took := time.Since(start)
	if err != nil {
		return 0, fmt.Errorf("submit: %w\n%s", err, text)
	}
	_, err = s.cluster.Run("scancel", "--me")
	return took, err
}

// change adds a statement to the last code cell of the notebook, a different one each time.
func (s *submission) change() error {
	s.changes++
	text, err := changed(s.original, fmt.Sprintf("\nprintln(%q)", fmt.Sprintf("change %d of %d", s.changes, time.Now().UnixNano())))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "notebook.ipynb"), text, 0o644)
}

// changed returns a notebook with text appended to the source of its last code cell.
func changed(notebook []byte, text string) ([]byte, error) {
	var top map[string]any
	if err := json.Unmarshal(notebook, &top); err != nil {
		return nil, fmt.Errorf("notebook: %w", err)
	}
	cells, _ := top["cells"].([]any)
	for i := len(cells) - 1; i >= 0; i-- {
		cell, _ := cells[i].(map[string]any)
		if cell["cell_type"] != "code" {
			continue
		}
		switch source := cell["source"].(type) {
		case string:
			cell["source"] = source + text
		case []any:
			cell["source"] = append(source, text)
		}
		return json.MarshalIndent(top, "", " ")
	}
	return nil, errors.New("notebook: no code cell")
}

func (r submitReport) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Submission\n\nThe time from the start of `submit --nodes 2` until sbatch has accepted the job. Median of %d.\n%s.\n\n", r.Rounds, r.CPU)
	fmt.Fprintf(&b, "| | seconds | limit |\n|---|--:|--:|\n")
	for _, row := range r.Rows {
		limit := ""
		if row.Limit > 0 {
			limit = fmt.Sprintf("%.1f", row.Limit)
		}
		fmt.Fprintf(&b, "| %s | %.2f | %s |\n", row.Name, row.Seconds, limit)
	}
	return b.String()
}
