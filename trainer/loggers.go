package trainer

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"gonbatch/distributed"
	"gonbatch/logger"
	"gonbatch/rundir"
)

// openLoggers opens rank 0's loggers. What can't be opened is said and left out: a logger never stops a training. It is nil if there are
// none.
func openLoggers(w *distributed.World, c Config, getenv func(string) string) logger.Logger {
	run, inRun := rundir.FromEnv(getenv)
	want := func(name string, byDefault bool) bool {
		if len(c.Loggers) == 0 {
			return byDefault
		}
		return slices.Contains(c.Loggers, name)
	}
	var all []logger.Logger
	add := func(name string, l logger.Logger, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "trainer: the logger %s is not used: %v\n", name, err)
			return
		}
		all = append(all, l)
	}
	if inRun {
		l, err := logger.NewJSONLines(run.Metrics())
		add("metrics.jsonl", l, err)
	}
	if inRun && want("csv", true) {
		l, err := logger.NewCSV(run.MetricsTable())
		add("csv", l, err)
	}
	if inRun && want("tensorboard", true) {
		l, err := logger.NewTensorBoard(run.TensorBoard())
		add("tensorboard", l, err)
	}
	if inRun && want("curves", true) {
		l, err := logger.NewCurves(logger.CurvesOptions{Dir: run.Curves(), History: run.Metrics()})
		add("curves", l, err)
	}
	if want("mlflow", getenv("MLFLOW_TRACKING_URI") != "") {
		l, err := openMLflow(run, inRun, c, getenv)
		add("mlflow", l, err)
	}
	if len(all) == 0 {
		return nil
	}
	return logger.NewMulti(logger.MultiOptions{}, all...)
}

// openMLflow continues the run directory's MLflow run, if it has one.
func openMLflow(run rundir.Dir, inRun bool, c Config, getenv func(string) string) (logger.Logger, error) {
	options := logger.MLflowFromEnv(getenv)
	if !inRun {
		return logger.NewMLflow(options)
	}
	if options.RunName == "" {
		options.RunName = run.Name()
	}
	if id, err := os.ReadFile(run.MLflowRun()); err == nil && options.RunID == "" {
		options.RunID = strings.TrimSpace(string(id))
	}
	l, err := logger.NewMLflow(options)
	if err != nil {
		return nil, err
	}
	return l, os.WriteFile(run.MLflowRun(), []byte(l.RunID()+"\n"), 0o644)
}
