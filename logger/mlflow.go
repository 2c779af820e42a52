package logger

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// MLflowOptions says where to record a run. MLflowFromEnv reads them from MLflow's own variables.
type MLflowOptions struct {
	// TrackingURI is the address of a tracking server: http://HOST:PORT or https://HOST.
	TrackingURI string
	// Experiment is the experiment's name. It is created if it is missing. Default: "Default".
	Experiment string
	// RunID is the id of a run to continue. If it is unset, a new run is started.
	RunID string
	// RunName names a new run. Default: a name made from its id.
	RunName string
	// Username and Password, or Token, are for a server that requires them.
	Username, Password, Token string
	// Timeout limits each request to a server. Default: 30 s. An upload of a file gets an
	// additional second for each megabyte.
	Timeout time.Duration
}

// MLflowFromEnv returns the options that MLflow's clients read from the environment:
// MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME, MLFLOW_RUN_ID, MLFLOW_RUN_NAME,
// MLFLOW_TRACKING_USERNAME, MLFLOW_TRACKING_PASSWORD, MLFLOW_TRACKING_TOKEN, and
// MLFLOW_HTTP_REQUEST_TIMEOUT in seconds.
func MLflowFromEnv(getenv func(string) string) MLflowOptions {
	timeout, _ := strconv.ParseFloat(getenv("MLFLOW_HTTP_REQUEST_TIMEOUT"), 64) // If it is not a number, the default applies.
	return MLflowOptions{
		Timeout:     time.Duration(timeout * float64(time.Second)),
		TrackingURI: getenv("MLFLOW_TRACKING_URI"),
		Experiment:  getenv("MLFLOW_EXPERIMENT_NAME"),
		RunID:       getenv("MLFLOW_RUN_ID"),
		RunName:     getenv("MLFLOW_RUN_NAME"),
		Username:    getenv("MLFLOW_TRACKING_USERNAME"),
		Password:    getenv("MLFLOW_TRACKING_PASSWORD"),
		Token:       getenv("MLFLOW_TRACKING_TOKEN"),
	}
}

// MLflow records a run in MLflow: parameters, metrics by step, images as artifacts
// images/NAME/step-N.png, artifacts, and models. It ignores histograms. In names, it replaces every
// character that MLflow doesn't allow (anything but letters, digits and "_-. :/") with "_".
//
// Close marks the run as finished. A killed process leaves it running; with RunID, another process
// can continue it, by MLflow's rules. A parameter never changes, so recording it with another value
// is an error. A metric is never deleted, so if the run already has a metric for a step, it isn't
// recorded again.
type MLflow struct {
	record
	server *mlflowServer
	now    func() time.Time
}

var (
	_ Logger      = (*MLflow)(nil)
	_ ModelLogger = (*MLflow)(nil)
)

// NewMLflow starts a run, or continues the one in the options. It blocks until the server has
// responded.
func NewMLflow(o MLflowOptions) (*MLflow, error) {
	if o.Experiment == "" {
		o.Experiment = "Default"
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if err := checkAddress(o.TrackingURI); err != nil {
		return nil, fmt.Errorf("logger: MLflow: %w", err)
	}
	server, err := openMLflowServer(o)
	if err != nil {
		return nil, fmt.Errorf("logger: MLflow at %s: %w", redacted(o.TrackingURI), err)
	}
	return &MLflow{server: server, now: time.Now}, nil
}

// checkAddress refuses anything that is not a tracking server: MLflow's clients and server no
// longer use its file store.
func checkAddress(uri string) error {
	const fix = "start one with `mlflow server` and set MLFLOW_TRACKING_URI to http://HOST:PORT or https://HOST"
	switch {
	case uri == "":
		return errors.New("no tracking server is given: " + fix)
	case !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://"):
		return fmt.Errorf("%s is not the address of a tracking server: %s", redacted(uri), fix)
	}
	return nil
}

// redacted returns an address without its password.
func redacted(uri string) string {
	if u, err := url.Parse(uri); err == nil {
		return u.Redacted()
	}
	return uri
}

// RunID returns the run's id, with which the next process can continue the run.
func (l *MLflow) RunID() string { return l.server.run.RunID }

// Params records parameters. A recorded parameter can't change.
func (l *MLflow) Params(params map[string]any) error {
	texts := make(map[string]string, len(params))
	for name, value := range params {
		texts[mlflowName(name)] = paramText(value)
	}
	var all []map[string]any
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		all = append(all, map[string]any{"key": name, "value": texts[name]})
	}
	return l.do(l.title()+"record parameters", func() error { return l.server.batches("params", all, mlflowParamsPerRequest) })
}

// Scalars records metrics at a step.
func (l *MLflow) Scalars(step int64, values map[string]float64) error {
	allowed := make(map[string]float64, len(values))
	for name, value := range values {
		allowed[mlflowName(name)] = value
	}
	allowed = l.server.kept.fresh(step, allowed)
	var all []map[string]any
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		all = append(all, map[string]any{"key": name, "value": jsonNumber(allowed[name]), "timestamp": l.now().UnixMilli(), "step": step})
	}
	return l.do(l.title()+"record metrics", func() error { return l.server.batches("metrics", all, mlflowMetricsPerRequest) })
}

// Image records an image as an artifact.
func (l *MLflow) Image(step int64, name string, img image.Image) error {
	var text bytes.Buffer
	if err := png.Encode(&text, img); err != nil {
		return fmt.Errorf("logger: image %s of step %d: %w", name, step, err)
	}
	name = rundir.ImagePath("", mlflowName(name), step) // as in a folder of curves
	return l.do(l.title()+"record "+name, func() error { return l.server.artifact(name, &text) })
}

// Artifact copies a file to the run's artifacts, under its own name.
func (l *MLflow) Artifact(file string) error {
	return l.do(l.title()+"record "+file, func() error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		return l.server.artifact(filepath.Base(file), f)
	})
}

// Model records a model of the flavor safetensors under the name: the weights as model.safetensors,
// and the file MLmodel, by which MLflow's clients and pages recognize a model.
func (l *MLflow) Model(name, weights string) error {
	name = mlflowName(name)
	return l.do(l.title()+"record the model "+name, func() error {
		f, err := os.Open(weights)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // It was only read.
		info, err := f.Stat()
		if err != nil {
			return err
		}
		m := newMLflowModel(name, l.server.run.RunID, info.Size(), l.now())
		if err := l.server.artifact(path.Join(name, mlflowWeights), f); err != nil {
			return err
		}
		return m.describe(l.server)
	})
}

// Close marks the run as finished.
func (l *MLflow) Close() error {
	return l.end(l.title()+"finish", func() error { return l.server.finish(l.now()) })
}

// title begins what errors say about the run.
func (l *MLflow) title() string { return "MLflow run " + l.server.run.RunID + ": " }

var mlflowForbidden = regexp.MustCompile(`[^A-Za-z0-9_\-. :/]`)

// mlflowName returns a name that MLflow allows, and that stays inside a folder.
func mlflowName(name string) string {
	name = mlflowForbidden.ReplaceAllString(name, "_")
	if path.Clean(name) != name || !filepath.IsLocal(name) {
		name = strings.ReplaceAll(name, "/", "_")
	}
	if strings.Trim(name, ".") == "" {
		name += "_"
	}
	return name
}
