package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
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
	CPU         string      `json:"cpu"`
	LoadAverage string      `json:"load_average"`
	Rounds      int         `json:"rounds"`
	Rows        []submitRow `json:"rows"`
}

// submitRow is what submit and its peers take for the same thing.
type submitRow struct {
	Name    string       `json:"name"`
	Seconds float64      `json:"seconds"`
	Limit   float64      `json:"limit_seconds,omitempty"`
	All     []float64    `json:"all_seconds"`
	Peers   []submitPeer `json:"peers,omitempty"`
}

type submitPeer struct {
	Name    string    `json:"name"`
	Seconds float64   `json:"seconds"`
	Ratio   float64   `json:"ratio"` // Its time, in times of submit's.
	All     []float64 `json:"all_seconds"`
}

// entry is one of the commands that do the same thing.
type entry struct {
	name    string
	prepare func() error // Before each round, if it isn't nil.
	command func(round int) []string
}

// submission has a cluster, and a folder with notebooks, run directories, and the peers' files.
type submission struct {
	cluster  *cluster.Cluster
	program  string
	source   string // The checkout of gonbatch.
	dir      string
	original []byte
	changes  int
	report   submitReport
	out      io.Writer
}

// measureSubmissions times submit and its peers on a real cluster. Submitted jobs don't start: they
// would take the processors from the next command.
func measureSubmissions(ctx context.Context, opts options, out io.Writer) (_ submitReport, err error) {
	s := &submission{report: submitReport{CPU: cpuModel(), LoadAverage: loadAverage(), Rounds: opts.rounds}, out: out}
	if s.program, err = build(ctx, "./cmd/submit", "bench-submit"); err != nil {
		return s.report, err
	}
	if s.original, err = os.ReadFile(opts.notebook); err != nil {
		return s.report, err
	}
	if s.source, err = os.Getwd(); err != nil {
		return s.report, err
	}
	if s.dir, err = os.MkdirTemp("", "bench-submit-"); err != nil {
		return s.report, err
	}
	if s.cluster, err = cluster.Open(); err != nil {
		return s.report, errors.Join(err, os.RemoveAll(s.dir))
	}
	defer func() { err = errors.Join(err, s.cluster.Close(), os.RemoveAll(s.dir)) }()
	if err := s.writeNotebooks(); err != nil {
		return s.report, err
	}
	// What has many jobs comes last: SLURM knows a job for ten minutes after its end.
	for _, measure := range []func(context.Context, int) error{s.measureAcceptance, s.measureFollowing, s.measureList, s.measureStatus, s.measureSweeps} {
		if err := measure(ctx, opts.rounds); err != nil {
			return s.report, err
		}
	}
	return s.report, nil
}

// compare times the commands of submit and its peers, which take turns, and adds a row to the
// report.
func (s *submission) compare(ctx context.Context, row submitRow, rounds int, entries ...entry) error {
	all := make([][]float64, len(entries))
	for round := range rounds {
		for i, e := range entries {
			if e.prepare != nil {
				if err := e.prepare(); err != nil {
					return err
				}
			}
			words := e.command(round)
			took, err := timed(ctx, s.environ(), words[0], words[1:]...)
			if err != nil {
				return err
			}
			all[i] = append(all[i], took)
		}
	}
	s.add(row, entries, all)
	return nil
}

// add adds a row with the times of submit, which is the first entry, and its peers.
func (s *submission) add(row submitRow, entries []entry, all [][]float64) {
	same := func(v float64) float64 { return v }
	row.All, row.Seconds = all[0], median(all[0], same)
	fmt.Fprintf(s.out, "%s: submit %.3g s\n", row.Name, row.Seconds)
	for i, e := range entries[1:] {
		seconds := median(all[1+i], same)
		row.Peers = append(row.Peers, submitPeer{Name: e.name, Seconds: seconds, Ratio: seconds / row.Seconds, All: all[1+i]})
		fmt.Fprintf(s.out, "\t%s %.3g s\n", e.name, seconds)
	}
	s.report.Rows = append(s.report.Rows, row)
}

// environ returns the variables of all commands.
func (s *submission) environ() []string {
	return append(s.cluster.Env(), rundir.EnvSource+"="+s.source)
}

// change adds a statement to the last code cell of the notebook, a different one each time.
func (s *submission) change() error {
	s.changes++
	text, err := changed(s.original, fmt.Sprintf("\nprintln(%q)", fmt.Sprintf("change %d of %d", s.changes, time.Now().UnixNano())))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, "changing.ipynb"), text, 0o644)
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
	fmt.Fprintf(&b, `# Submission

What the users of submit and of its peers wait for, on a SLURM cluster on this machine: the time of
the whole command, as the median of up to %d rounds in which the commands take turns, and for a line
of the log the median of its age. A ratio above 1 means that submit is faster.

The peers compile nothing; submit compiles a changed cell. The
cluster has no accounting database: all that sacct says to submitit is that there is none, so that
its states are unknown, and their time is a lower bound. "As on NFS" means without inotify, which
doesn't see what other machines write. submitit has no way to follow a log: its users call stdout()
as often as they like, and each call reads the whole log. What it says of a job's state may be 600 s
old, by default.

%s, load average %s.%s

| | command | seconds | ratio | limit |
|---|---|--:|--:|--:|
`, r.Rounds, r.CPU, r.LoadAverage, busy(r.LoadAverage))
	for _, row := range r.Rows {
		limit := ""
		if row.Limit > 0 {
			limit = fmt.Sprintf("%.1f", row.Limit)
		}
		fmt.Fprintf(&b, "| %s | submit | %.3g | | %s |\n", row.Name, row.Seconds, limit)
		for _, p := range row.Peers {
			fmt.Fprintf(&b, "| | %s | %.3g | %.2g | |\n", p.Name, p.Seconds, p.Ratio)
		}
	}
	return b.String()
}
