package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"gonbatch/checkpoint/folder"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

func newStatusCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [RUN]",
		Short: "Show a run's status, or list all runs",
		Long:  "status shows a run's status. Without RUN it lists all runs.\n\n" + aboutRun,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("submit status takes at most one RUN, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				r, err := a.findRun(cmd, args[0])
				if err != nil {
					return err
				}
				return showStatus(cmd.Context(), a, r)
			}
			root, err := a.runRoot(cmd)
			if err != nil {
				return err
			}
			return listStatus(cmd.Context(), a, root)
		},
	}
	addRunRoot(cmd)
	return cmd
}

// showStatus tells all about one run.
func showStatus(ctx context.Context, a *app, r run) error {
	r, status, err := r.look(ctx, a, nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "run:           %s\n", r.dir.Name())
	if r.queued() {
		fmt.Fprintf(a.out, "job:           %s\n", r.manifest.JobID)
	}
	fmt.Fprintf(a.out, "state:         %s\n", stateOf(r, status))
	fmt.Fprintf(a.out, "notebook:      %s\n", r.notebook())
	if err := showProgress(a.out, r); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "run directory: %s\n", r.dir.Path())
	if err == nil && status.State.Ended() && status.State != submit.Completed {
		_, err = fmt.Fprintf(a.out, "\n%s\n", submit.NewJobError(r.job(), status))
	}
	return err
}

// notebook names the notebook: its own place, or where that is gone the copy that the run has.
func (r run) notebook() string {
	path := r.manifest.Notebook.Path
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%s (submitted as %s, which is gone)", r.dir.Notebook(), path)
	}
	return path
}

// showProgress shows what the starts of a run have done: restarts, finished cells, the newest
// checkpoint.
func showProgress(w io.Writer, r run) error {
	starts, err := rundir.CountStarts(r.dir)
	if err != nil {
		return err
	}
	if starts > 1 {
		fmt.Fprintf(w, "restarts:      %d\n", starts-1)
	}
	finished, err := rundir.FinishedSteps(r.dir)
	if err != nil {
		return err
	}
	if all := len(r.manifest.Steps); all > 1 {
		fmt.Fprintf(w, "cells:         %d of %d finished\n", len(finished), all)
	}
	newest, err := newestCheckpoint(r.dir)
	if err != nil || newest.Path == "" {
		return err
	}
	_, err = fmt.Fprintf(w, "checkpoint:    after step %d, of %s, in %s\n", newest.Step, newest.Time.Local().Format(time.DateTime), filepath.Dir(newest.Path))
	return err
}

// newestCheckpoint is the last one that any training of the run has written; one without a path is none.
func newestCheckpoint(dir rundir.Dir) (newest folder.Info, err error) {
	folders := []string{dir.Checkpoints()}
	for _, below := range []string{"*", filepath.Join("*", "*")} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(dir.Checkpoints()), below))
		if err != nil {
			return newest, err
		}
		folders = append(folders, found...)
	}
	for _, f := range folders {
		if info, err := os.Stat(f); err != nil || !info.IsDir() {
			continue // A training may write there just now.
		}
		checkpoints, err := folder.List(f)
		if err != nil {
			return newest, err
		}
		for _, c := range checkpoints {
			if c.Valid() && c.Time.After(newest.Time) {
				newest = c
			}
		}
	}
	return newest, nil
}

// escapeGlob makes a pattern that matches a path only.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// listStatus lists the runs in root, the newest last.
func listStatus(ctx context.Context, a *app, root string) error {
	runs, err := rundir.List(root)
	if err != nil {
		return err
	}
	if len(runs) == 0 {
		_, err := fmt.Fprintf(a.out, "no runs in %s\n", root)
		return err
	}
	survey := slurm.New(a.runner).Survey(ctx)
	table := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "JOB\tCREATED\tRUN\tSTATE")
	for _, dir := range runs {
		job, created, state := line(ctx, a, dir, survey)
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", job, created, dir.Name(), state)
	}
	return table.Flush()
}

// line is a run's line in the list. What cannot be found out is said in the line: it must not hide the other runs.
func line(ctx context.Context, a *app, dir rundir.Dir, survey *slurm.Survey) (job, created, state string) {
	r, err := openRun(dir)
	if err != nil {
		return "-", "-", trimmed(err.Error())
	}
	r, status, err := r.look(ctx, a, survey)
	job, created = "-", r.manifest.Created.Local().Format(time.DateTime)
	if r.queued() {
		job = r.manifest.JobID
	}
	if err != nil {
		return job, created, "unknown: " + trimmed(err.Error())
	}
	return job, created, stateOf(r, status)
}

// stateOf is the state in words; a run that was only staged has none.
func stateOf(r run, status submit.Status) string {
	if status.State == submit.Unknown && r.manifest.JobID == "" {
		if r.unasked != nil && !errors.Is(r.unasked, exec.ErrNotFound) {
			return "staged, not queued as far as is known here: " + trimmed(r.unasked.Error())
		}
		return "staged, not queued"
	}
	return status.String()
}
