package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
	"gonbatch/submit/slurm"
)

// logsOptions are those of "submit logs".
type logsOptions struct {
	Run    string
	Follow bool
	Rank   int
}

func newLogsCommand(a *app) *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:     "logs [-f] [--rank N] RUN",
		Short:   "Print a rank's log",
		Long:    "logs prints the log of rank 0, or of another rank with --rank.\n\n" + aboutRun,
		Example: "  submit logs -f 4711\n  submit logs --rank 1 mnist-20261121-101500-4f2a",
		Args:    oneArg("RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if o.Rank < 0 {
				return usage("--rank=%d: ranks count from 0", o.Rank)
			}
			r, err := a.findRun(cmd, o.Run)
			if err != nil {
				return err
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return runLogs(ctx, a, r, o)
		},
	}
	cmd.Flags().BoolVarP(&o.Follow, "follow", "f", false, "show the log until the job ends, and exit with the job's status")
	cmd.Flags().IntVar(&o.Rank, "rank", 0, "rank whose log to print")
	addRunRoot(cmd)
	return cmd
}

func runLogs(ctx context.Context, a *app, r run, o logsOptions) error {
	if o.Follow {
		scheduler := slurm.New(a.runner)
		survey := scheduler.Survey(ctx)
		r, err := r.adopted(ctx, a, survey)
		if err != nil {
			return err
		}
		if r.staged() {
			return fmt.Errorf("run %s is staged, not queued: there is nothing to follow", r.dir.Name())
		}
		r = r.requeued(ctx, a, scheduler, survey)
		return follow(ctx, a, r.asker(scheduler), r.job(), o.Rank)
	}
	any, err := submit.NewTail(r.dir.RankLog(o.Rank)).Copy(a.out)
	if err != nil || any {
		return errors.Join(err, describeFailure(a.err, r))
	}
	r, status, err := r.look(ctx, a, nil)
	if err != nil {
		return errors.Join(fmt.Errorf("rank %d has no log: %s: %w", o.Rank, r.dir.RankLog(o.Rank), fs.ErrNotExist), err)
	}
	return fmt.Errorf("rank %d of run %s has logged nothing; the run is %s", o.Rank, r.dir.Name(), status)
}

// describeFailure tells what the ranks recorded of their failure, if they did.
func describeFailure(w io.Writer, r run) error {
	f, err := rundir.ReadFailure(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nthe run failed: %s\n", submit.DescribeFailure(f))
	return err
}

// oneArg demands one argument and says what it is.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("submit %s takes one %s, not %d (see submit %s --help)", cmd.Name(), what, len(args), cmd.Name())
		}
		return nil
	}
}
