package trainer

import (
	"fmt"
	"image"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"

	"gonbatch/internal/rundir"
	"gonbatch/logger"
	"gonbatch/trainer/internal/saved"
)

// openLoggers opens rank 0's loggers. It prints an error for each one that it can't open and leaves
// it out: a logger never stops a training run. It returns nil if there are no loggers.
func openLoggers(c Config, env environment) logger.Logger {
	var all []logger.Logger
	add := func(name string, l logger.Logger, err error) {
		if err != nil {
			fmt.Fprintf(os.Stderr, "trainer: the logger %s is not used: %v\n", name, err)
			return
		}
		all = append(all, l)
	}
	if env.InRun() {
		addFiles(c, env, add)
	}
	if c.wantsLogger("mlflow", env.mlflow.TrackingURI != "") {
		add("mlflow", logger.NewDeferred(func() (logger.Logger, error) { return openMLflow(c, env) }), nil)
	}
	if len(all) == 0 {
		return nil
	}
	return logger.NewMulti(logger.MultiOptions{}, all...)
}

// wantsLogger reports whether a logger is configured.
func (c Config) wantsLogger(name string, byDefault bool) bool {
	if len(c.Loggers) == 0 {
		return byDefault
	}
	return slices.Contains(c.Loggers, name)
}

// addFiles opens the loggers that write to the run directory, which several training runs may
// share.
func addFiles(c Config, env environment, add func(string, logger.Logger, error)) {
	run := env.Dir
	training := logger.Training(c.Name)
	lines, err := logger.NewJSONLines(run.Metrics(), training)
	add(filepath.Base(run.Metrics()), lines, err)
	params, err := logger.NewParamsFile(filepath.Join(run.Params(), saved.FileName(c.Name)+".json"), training, logger.First(c.isChosen))
	add(filepath.Base(run.Params()), params, err)
	if c.wantsLogger("csv", true) {
		l, err := logger.NewCSV(run.MetricsTable(), training)
		add("csv", l, err)
	}
	if c.wantsLogger("tensorboard", true) {
		l, err := logger.NewTensorBoard(filepath.Join(run.TensorBoard(), saved.FileName(c.Name)))
		add("tensorboard", l, err)
	}
	if c.wantsLogger("curves", true) {
		folder := run.Curves()
		if c.Name != env.Cell {
			folder = filepath.Join(folder, saved.FileName(c.Name))
		}
		l, err := logger.NewCurves(logger.CurvesOptions{Dir: folder, History: run.Metrics(), Training: c.Name})
		add("curves", l, err)
	}
}

// openMLflow starts a run in MLflow. If an earlier start of this training run has one, it continues
// that run, unless the training starts over.
func openMLflow(c Config, env environment) (logger.Logger, error) {
	run, options := env.Dir, env.mlflow
	if !env.InRun() {
		return logger.NewMLflow(options)
	}
	if options.RunName == "" {
		options.RunName = run.Name() + "/" + c.Name
	}
	file := filepath.Join(run.MLflowRuns(), saved.FileName(c.Name))
	if id, err := os.ReadFile(file); err == nil && options.RunID == "" && !c.startsOver(env) {
		options.RunID = strings.TrimSpace(string(id))
	}
	l, err := logger.NewMLflow(options)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(run.MLflowRuns(), 0o777); err != nil {
		return l, nil // A later start begins its own run.
	}
	_ = rundir.WriteFileAtomic(file, []byte(l.RunID()+"\n"), 0o644) // As above.
	return l, nil
}

// rewindLoggers makes the loggers drop everything that an earlier start of the training logged
// after the update from which this one resumes.
func (t *Trainer) rewindLoggers() error {
	if t.life >= ready {
		return nil
	}
	t.life = ready
	if r, ok := t.logger.(logger.Rewinder); ok {
		return r.Rewind(t.at.Step)
	}
	return nil
}

// logModel passes the weights of the checkpoint at the end of the training to the loggers that
// record models.
func (r *run) logModel() error {
	l, ok := r.logger.(logger.ModelLogger)
	if !ok || r.folder == nil {
		return nil
	}
	weights, err := r.folder.NewestWeights()
	if err != nil || weights == "" {
		return err
	}
	return l.Model("model", weights)
}

// LogArtifact logs a file on rank 0, for MLflow to store. The file must not change until the world
// is closed. Other ranks do nothing.
func (t *Trainer) LogArtifact(path string) error {
	if t.logger == nil {
		return nil
	}
	return t.logger.Artifact(path)
}

// LogImage logs an image for the current step on rank 0: as a PNG in the run directory, to
// TensorBoard and MLflow, and below the cell in a notebook. Other ranks do nothing.
func (t *Trainer) LogImage(name string, img image.Image) error {
	if !t.world.IsMain() {
		return nil
	}
	if gonbui.IsNotebook {
		if err := gonbui.DisplayImage(img); err != nil {
			return err
		}
	}
	if t.logger == nil {
		return nil
	}
	return t.logger.Image(t.at.Step, name, img)
}
