package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

const (
	never      = "now+1hour" // When submitted jobs begin: they are cancelled before.
	sweepSize  = 100
	listedRuns = 10_000
	queuedJobs = 300
	// preparedInShell is how many of a sweep papermill's and nbconvert's own commands prepare.
	preparedInShell = 5
)

// The folders in the submission's.
const (
	listedRoot    = "listed-runs"
	listedResults = "listed-results"
)

func (s *submission) file(name string) string { return filepath.Join(s.dir, name) }

// writeNotebooks writes a small notebook with a flag and a parameter, and one like it in Python.
func (s *submission) writeNotebooks() error {
	parameters := codeCell(1, "var seed = 0")
	parameters["metadata"] = map[string]any{"tags": []string{"parameters"}}
	const program = `import (
	"flag"
	"fmt"
	"time"
)

var (
	rate  = flag.Int("rate", 0, "of learning")
	lines = flag.Int("lines", 1, "to print")
	pause = flag.Duration("pause", 0, "before each line")
)

%%
fmt.Println(seed, *rate)
for range *lines {
	time.Sleep(*pause)
	fmt.Println(time.Now().UnixNano())
}`
	python := codeCell(1, "seed = 0")
	python["metadata"] = parameters["metadata"]
	for name, cells := range map[string][]map[string]any{
		"small.ipynb":  {parameters, codeCell(2, program)},
		"python.ipynb": {python, codeCell(2, "print(seed)")},
	} {
		kernel, language := "gonb", "go"
		if name == "python.ipynb" {
			kernel, language = "python3", "python"
		}
		text, err := json.Marshal(map[string]any{
			"nbformat": 4, "nbformat_minor": 5, "cells": cells,
			"metadata": map[string]any{
				"kernelspec":    map[string]string{"name": kernel, "language": language, "display_name": language},
				"language_info": map[string]string{"name": language, "file_extension": "." + language},
			},
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(s.file(name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// ours returns submit with its runs in a folder of the submission's. Its arguments may begin with
// one of submit's commands.
func (s *submission) ours(root string, args ...string) []string {
	words := []string{s.program}
	if !strings.HasPrefix(args[0], "-") {
		words, args = append(words, args[0]), args[1:]
	}
	return append(append(words, "--run-root="+s.file(root)), args...)
}

// submitit returns a command of peers/submitit_jobs.py.
func (s *submission) submitit(action, folder string, args ...string) []string {
	python := filepath.Join(s.source, ".cache", "bench-venv", "bin", "python")
	return append([]string{python, filepath.Join(s.source, "bench", "peers", "submitit_jobs.py"), action, s.file(folder)}, args...)
}

// jupyter returns a program of the environment that has nbconvert and papermill.
func (s *submission) jupyter(name string) string {
	return filepath.Join(s.source, ".cache", "venv", "bin", name)
}

// shell returns a command of bash, whose $0, $1 and so on are args.
func shell(script string, args ...string) []string {
	return append([]string{"bash", "-euc", script}, args...)
}

// always returns a command that is the same in each round.
func always(words []string) func(int) []string { return func(int) []string { return words } }

// cancel cancels all jobs.
func (s *submission) cancel() error {
	_, err := s.cluster.Run("scancel", "--me")
	return err
}

// measureAcceptance times submissions until sbatch has accepted the job.
func (s *submission) measureAcceptance(ctx context.Context, rounds int) error {
	notebook := s.file("changing.ipynb")
	submit := always(s.ours("runs", "--nodes=2", "--begin="+never, "--platform=cpu", notebook))
	const convert = `"$0" --log-level=ERROR --to script --output-dir "$2" "$1"; sbatch --nodes=2 --begin="$3" --wrap "python $2/changing.py"`
	peers := []entry{
		{name: "submitit `submit`", command: always(s.submitit("submit", "submitit", never))},
		{name: "nbconvert, `sbatch`", command: always(shell(convert, s.jupyter("jupyter-nbconvert"), notebook, s.dir, never))},
	}
	for _, c := range []struct {
		row     submitRow
		rounds  int
		prepare func() error
		peers   []entry
	}{
		{submitRow{Name: "a notebook's first time"}, 1, s.change, nil},
		{submitRow{Name: "unchanged notebook", Limit: limitUnchanged.Seconds()}, rounds, nil, peers},
		{submitRow{Name: "one changed cell", Limit: limitChanged.Seconds()}, rounds, s.change, peers},
	} {
		ours := entry{prepare: c.prepare, command: submit}
		if err := s.compare(ctx, c.row, c.rounds, append([]entry{ours}, c.peers...)...); err != nil {
			return err
		}
	}
	return s.cancel()
}

// measureSweeps times the submission of many jobs that differ in a value, which is a new one in
// each round.
func (s *submission) measureSweeps(ctx context.Context, rounds int) error {
	rounds = min(rounds, 3)
	values := func(name string, round int) string {
		return fmt.Sprintf("--sweep=%s=%d..%d", name, round*sweepSize+1, (round+1)*sweepSize)
	}
	n := strconv.Itoa(sweepSize)
	sweep := func(name string) entry {
		return entry{prepare: s.cancel, command: func(round int) []string {
			return s.ours("sweeps", "--begin="+never, values(name, round), s.file("small.ipynb"))
		}}
	}
	array := entry{name: "submitit `map_array`", prepare: s.cancel, command: always(s.submitit("array", "submitit", never, n))}
	loop := entry{name: "100 times `sbatch`", prepare: s.cancel, command: always(shell(`for i in $(seq "$0"); do sbatch --begin="$1" --wrap "python train.py --seed $i"; done`, n, never))}
	if err := s.compare(ctx, submitRow{Name: "100 values of a flag"}, rounds, sweep("rate"), array, loop); err != nil {
		return err
	}
	inside := entry{name: "papermill, nbconvert and `sbatch` in one Python", prepare: s.cancel, command: always([]string{s.jupyter("python"),
		filepath.Join(s.source, "bench", "peers", "papermill_sweep.py"), s.file("python.ipynb"), s.dir, never, n})}
	if err := s.compare(ctx, submitRow{Name: "100 values of a parameter"}, rounds, sweep("seed"), array, loop, inside); err != nil {
		return err
	}
	return s.prepareInShell(ctx)
}

// prepareInShell adds the usual way of papermill and nbconvert to the last row: two commands for
// each job. It takes so long that a few jobs stand for all.
func (s *submission) prepareInShell(ctx context.Context) error {
	const script = `for i in $(seq "$4"); do "$0/papermill" --prepare-only -p seed $i "$1" "$2/$i.ipynb"
"$0/jupyter-nbconvert" --to script "$2/$i.ipynb"; sbatch --begin="$3" --wrap "python $2/$i.py"; done`
	words := shell(script, s.jupyter(""), s.file("python.ipynb"), s.dir, never, strconv.Itoa(preparedInShell))
	seconds, err := timed(ctx, s.environ(), words[0], words[1:]...)
	if err != nil {
		return err
	}
	seconds *= sweepSize / preparedInShell
	last := &s.report.Rows[len(s.report.Rows)-1]
	last.Peers = append(last.Peers, submitPeer{Name: fmt.Sprintf("the commands of both and `sbatch`: %d of them, times %d", preparedInShell, sweepSize/preparedInShell),
		Seconds: seconds, Ratio: seconds / last.Seconds, All: []float64{seconds}})
	return s.cancel()
}

// measureList times the list of many runs that have ended.
func (s *submission) measureList(ctx context.Context, rounds int) error {
	runs, err := rundir.List(s.file("followed"))
	if err != nil {
		return err
	}
	if err := copyRuns(runs[0], s.file(listedRoot), listedRuns); err != nil {
		return err
	}
	write := s.submitit("results", listedResults, strconv.Itoa(listedRuns))
	if _, err := timed(ctx, s.environ(), write[0], write[1:]...); err != nil {
		return err
	}
	return s.compare(ctx, submitRow{Name: "the list of 10,000 runs"}, rounds,
		entry{command: always(s.ours(listedRoot, "list"))},
		entry{name: "submitit `done()` of each, which isn't whether it failed", command: always(s.submitit("done", listedResults))},
		entry{name: "submitit `exception()` of each", command: always(s.submitit("outcome", listedResults))})
}

// copyRuns writes what list reads of n runs like one that has completed; every tenth has failed.
func copyRuns(run rundir.Dir, root string, n int) error {
	m, err := rundir.ReadManifest(run)
	if err != nil {
		return err
	}
	starts, err := os.ReadFile(run.Starts())
	if err != nil {
		return err
	}
	name, completed := run.JobName(), m.State
	for i := range n {
		m.Created = m.Created.Add(time.Second)
		m.Name, m.State = fmt.Sprintf("%s-%s-%04x", name, m.Created.Format("20060102-150405"), i), completed
		code := 0
		if i%10 == 0 {
			m.State, code = string(submit.Failed), 1
		}
		m.ExitCode, m.JobID = &code, strconv.Itoa(1_000_000+i)
		d := rundir.At(filepath.Join(root, m.Name))
		if err := os.MkdirAll(d.Finished(), 0o700); err != nil {
			return err
		}
		text, err := json.Marshal(m)
		if err != nil {
			return err
		}
		if err := os.WriteFile(d.ManifestPath(), text, 0o600); err != nil {
			return err
		}
		if err := os.WriteFile(d.Starts(), starts, 0o600); err != nil {
			return err
		}
		if code == 0 {
			if err := os.CopyFS(d.Finished(), os.DirFS(run.Finished())); err != nil {
				return err
			}
		}
	}
	return nil
}

// measureStatus times the question how many waiting jobs are.
func (s *submission) measureStatus(ctx context.Context, rounds int) error {
	sweep := s.ours("queued", "--begin="+never, fmt.Sprintf("--sweep=rate=1..%d", queuedJobs), s.file("small.ipynb"))
	if _, err := timed(ctx, s.environ(), sweep[0], sweep[1:]...); err != nil {
		return err
	}
	ids, err := s.cluster.Run("squeue", "--me", "--noheader", "--format=%i")
	if err != nil {
		return err
	}
	err = s.compare(ctx, submitRow{Name: "the status of 300 waiting jobs"}, rounds,
		entry{command: always(s.ours("queued", "status"))},
		entry{name: "`squeue --me`", command: always([]string{"squeue", "--me"})},
		entry{name: "submitit `state` of each", command: always(s.submitit("state", "submitit", strings.Fields(ids)...))})
	if err != nil {
		return err
	}
	return s.cancel()
}
