package main

import (
	"time"

	"github.com/spf13/cobra"

	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/report"
	"gonbatch/submit/run"
)

func newListCommand(a *app) *cobra.Command {
	var f run.Filter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs, by state, age, notebook or parameters",
		Long: `list lists the runs in the run root, the newest last: all of them, or those that match all given
options. Of options that are repeated, --state matches any, and --param all.`,
		Example: `  submit list --state failed --since 7d
  submit list --notebook mnist.ipynb --param lr=1e-3
  submit list --state active --everywhere
  submit list --since 7d --used`,
		Args: cobra.NoArgs,
	}
	addFilter(cmd, &f)
	cmd.Flags().BoolVar(&f.Everywhere, "everywhere", false, "also list runs in the other folders in which you have submitted")
	cmd.Flags().BoolVar(&f.Used, "used", false, "also show the memory and CPUs that each run has used, and what to ask for next time")
	addRunRoot(cmd)
	return reporting(a, cmd, func(cmd *cobra.Command, _ []string) (report.Report, error) {
		if err := f.Check(); err != nil {
			return nil, err
		}
		root, err := a.runRoot(cmd)
		if err != nil {
			return nil, err
		}
		return a.runs(cmd, root).List(cmd.Context(), f)
	})
}

func newCompareCommand(a *app) *cobra.Command {
	var c run.Comparison
	asCSV := false
	cmd := &cobra.Command{
		Use:   "compare [RUN...]",
		Short: "Compare runs: what differs, how they ended, their metrics",
		Long: `compare prints a table with a row for each training of the runs: the parameters, flags and
hyper-parameters that differ, the newest values of the metrics, the state, and the time since the
submission. RUN is as in "submit status", or the name of a job, which stands for all of its runs.
Without RUN, the options pick the runs.`,
		Example: `  submit compare 4711 4712 4713
  submit compare mnist --sort val/loss
  submit compare --since 2d --param optimizer=adam --csv
  submit compare train-sweep-20261121-101500-4f2a --plot loss.png`,
		Args: cobra.ArbitraryArgs,
	}
	addFilter(cmd, &c.Filter)
	cmd.Flags().StringVar(&c.Sort, "sort", "", "sort by this column, the smallest value first")
	cmd.Flags().BoolVar(&c.Reverse, "reverse", false, "the largest value first")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV")
	config.NonEmpty(cmd.Flags(), &c.Plot, "path", "plot", "", "", "also draw the metric of each run over the steps: a file that ends with .png, .svg, .pdf or .jpg")
	config.NonEmpty(cmd.Flags(), &c.Metric, "name", "metric", "", "val/loss", "with --plot: the metric")
	addRunRoot(cmd)
	return reporting(a, cmd, func(cmd *cobra.Command, args []string) (report.Report, error) {
		root, err := a.runRoot(cmd)
		if err != nil {
			return nil, err
		}
		if cmd.Flags().Changed("metric") && c.Plot == "" {
			return nil, submit.Usagef("--metric is about --plot: add --plot FILE")
		}
		c.Words = args
		table, err := a.runs(cmd, root).Compare(cmd.Context(), c)
		if asCSV {
			return report.CSV{Comparison: table}, err
		}
		return table, err
	})
}

func newScalingCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scaling SWEEP",
		Short: "Compare the speeds of a training in several sizes",
		Long: `scaling compares the runs that "submit --scaling" has submitted: the median of the examples per
second, the speed-up and efficiency relative to the first size, and the share of time in which the
training waited for data. The batch size is that of all ranks together, so this is strong scaling.`,
		Example: `  submit --scaling 1,2,4,8 -F train.ipynb -- -max_steps 200
  submit scaling train-sweep-20261121-101500-4f2a`,
		Args: oneArg("SWEEP"),
	}
	addRunRoot(cmd)
	return reporting(a, cmd, func(cmd *cobra.Command, args []string) (report.Report, error) {
		root, err := a.runRoot(cmd)
		if err != nil {
			return nil, err
		}
		return a.runs(cmd, root).Scaling(cmd.Context(), args[0])
	})
}

// addFilter declares the options that pick runs.
func addFilter(cmd *cobra.Command, f *run.Filter) {
	fs := cmd.Flags()
	fs.StringArrayVar(&f.States, "state", nil, "only runs in this state: completed, failed, running, ..., ended, or active; repeatable")
	fs.Var(ageValue{&f.Since}, "since", "only runs that were submitted in this time, such as 7d or 12h")
	config.NonEmpty(fs, &f.Notebook, "path", "notebook", "", "", "only runs of this notebook: a path or a file name")
	config.NonEmpty(fs, &f.Sweep, "name", "sweep", "", "", "only runs of this sweep")
	config.NonEmpty(fs, &f.Name, "name", "name", "", "", "only runs with this in their names")
	fs.StringArrayVarP(&f.Params, "param", "p", nil, "only runs with this NAME=VALUE of a parameter or a flag; repeatable")
}

func newPruneCommand(a *app) *cobra.Command {
	var p run.Pruning
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove old runs",
		Long: `prune lists the runs in the run root that match all given options, with the disk space that they
take, and removes them with --yes. It never removes a run that has not ended, and leaves the newest
of a job name that has a checkpoint if no other run of that name keeps one.`,
		Example: `  submit prune --older 30d
  submit prune --state failed,cancelled --older 7d --yes
  submit prune --notebook mnist.ipynb --keep 3 --yes`,
		Args: cobra.NoArgs,
	}
	addFilter(cmd, &p.Filter)
	cmd.Flags().Var(ageValue{&p.Older}, "older", "only runs that were last submitted, resumed or ended longer ago, such as 30d")
	config.IntVar(cmd.Flags(), &p.Keep, "keep", 0, "keep this many of the newest runs of each job name")
	cmd.Flags().BoolVar(&p.Sure, "yes", false, "remove the runs")
	addRunRoot(cmd)
	return reporting(a, cmd, func(cmd *cobra.Command, _ []string) (report.Report, error) {
		root, err := a.runRoot(cmd)
		if err != nil {
			return nil, err
		}
		return a.runs(cmd, root).Prune(cmd.Context(), p)
	})
}

// ageValue is the value of a flag with an age.
type ageValue struct{ to *time.Duration }

// String returns the age.
func (v ageValue) String() string {
	if v.to == nil || *v.to == 0 {
		return ""
	}
	return v.to.String()
}

// Set parses an age.
func (v ageValue) Set(text string) (err error) {
	if *v.to, err = run.ParseAge(text); err != nil {
		return config.ValueError{Err: err}
	}
	return nil
}

// Type is the kind of value, for the help.
func (v ageValue) Type() string { return "age" }
