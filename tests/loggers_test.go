package tests

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"image"
	"image/color"
	"io/fs"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/internal/machine"
	"gonbatch/logger"
	"gonbatch/logger/loggertest"
	"gonbatch/tests/jupyter"
)

//go:embed readlog.py
var readLog string

// readersEnv keeps MLflow's client and server off the network.
var readersEnv = []string{
	"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false", "MLFLOW_DISABLE_TELEMETRY=true", "GIT_PYTHON_REFRESH=quiet",
	"NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1",
}

// readers returns the path of a program in the Python environment with the loggers' real readers.
func readers(t *testing.T, program string) string {
	t.Helper()
	root, err := jupyter.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, ".cache", "loggers-venv", "bin", program)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		machine.Lacks(t, "no Python environment with TensorBoard and MLflow in .cache/loggers-venv: run `make setup`")
	}
	return path
}

// readBack decodes what the format's own reader prints.
func readBack[T any](t *testing.T, args ...string) T {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), readers(t, "python"), append([]string{"-c", readLog}, args...)...)
	cmd.Env = append(os.Environ(), readersEnv...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := bounded.Run(cmd); err != nil {
		t.Fatalf("read %q: %v\n%s", args, err, stderr.String())
	}
	var got T
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("read %q: %v\n%s", args, err, stdout.String())
	}
	return got
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func same(t *testing.T, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// picture returns an image whose first pixel is c.
func picture(c color.Color) image.Image {
	img := image.NewNRGBA(image.Rect(0, 0, 5, 3))
	img.Set(0, 0, c)
	return img
}

// tensorboardRead is what TensorBoard reads from a folder.
type tensorboardRead struct {
	Scalars    map[string][][2]any
	Images     map[string][]map[string]any
	Histograms map[string][][4]float64
	HParams    map[string]any
}

func TestTensorBoardReads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, err := logger.NewTensorBoard(dir)
	ok(t, err)
	ok(t, log.Params(map[string]any{"lr": 0.5, "epochs": 3, "nesterov": true, "optimizer": "adam", "limit": time.Minute}))
	for step := range int64(5) {
		ok(t, log.Scalars(step, map[string]float64{"train/loss": 4 - float64(step)}))
	}
	ok(t, log.Image(1, "samples", picture(color.NRGBA{R: 200, G: 10, B: 30, A: 255})), log.Histogram(1, "weights", []float64{-1, 0, 0.5, 2}), log.Close())

	// The next process resumes after step 2: its records replace those from step 3 on.
	log, err = logger.NewTensorBoard(dir)
	ok(t, err)
	ok(t, log.Scalars(3, map[string]float64{"train/loss": 0.5}), log.Scalars(4, map[string]float64{"train/loss": 0.25, "val/loss": math.Inf(1)}), log.Close())

	got := readBack[tensorboardRead](t, "tensorboard", dir)
	same(t, tensorboardRead{
		Scalars: map[string][][2]any{
			"train/loss": {{0.0, "4.0"}, {1.0, "3.0"}, {2.0, "2.0"}, {3.0, "0.5"}, {4.0, "0.25"}},
			"val/loss":   {{4.0, "inf"}},
		},
		Images:     map[string][]map[string]any{"samples": {{"step": 1.0, "size": []any{5.0, 3.0}, "first": []any{200.0, 10.0, 30.0}}}},
		Histograms: map[string][][4]float64{"weights": {{1, 4, 4, 1.5}}},
		HParams:    map[string]any{"lr": 0.5, "epochs": 3.0, "nesterov": true, "optimizer": "adam", "limit": "1m0s"},
	}, got)
}

func TestPythonReadsLines(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reader, file string
		open         func(path string) (logger.Logger, error)
	}{
		{"jsonlines", "metrics.jsonl", func(path string) (logger.Logger, error) { return logger.NewJSONLines(path) }},
		{"csv", "metrics.csv", func(path string) (logger.Logger, error) { return logger.NewCSV(path) }},
	}
	for _, tt := range tests {
		t.Run(tt.reader, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), tt.file)
			log, err := tt.open(path)
			ok(t, err)
			ok(t, log.Scalars(1, map[string]float64{"loss": 0.1}), log.Close())
			torn, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
			ok(t, err)
			_, err = torn.WriteString(`2,{"half`)
			ok(t, err, torn.Close())
			log, err = tt.open(path)
			ok(t, err)
			ok(t, log.Scalars(2, map[string]float64{"loss": math.NaN(), `"new", metric`: math.Inf(-1)}), log.Close())
			same(t, []map[string]string{
				{"step": "1.0", "loss": "0.1"}, {"step": "2.0", "loss": "nan", `"new", metric`: "-inf"},
			}, readBack[[]map[string]string](t, tt.reader, path))
		})
	}
}

// TestMLflow runs the loggers' suite against a real server, and reads a run with MLflow's own
// client.
func TestMLflow(t *testing.T) {
	t.Parallel()
	readers(t, "mlflow")
	uri := mlflowServer(t)
	t.Run("contract", func(t *testing.T) {
		runs := map[string]string{} // by folder
		loggertest.Run(t, loggertest.Kind{
			Open: func(dir string) (logger.Logger, error) {
				l, err := logger.NewMLflow(logger.MLflowOptions{TrackingURI: uri, Experiment: "contract", RunID: runs[dir]})
				if err == nil {
					runs[dir] = l.RunID()
				}
				return l, err
			},
			Loss: func(t *testing.T, dir string) map[int64]float64 { return mlflowLoss(t, uri, runs[dir]) },
		})
	})
	t.Run("read by its client", func(t *testing.T) { readsMLflow(t, uri) })
}

// mlflowLoss asks the server for the metric "loss" of a run.
func mlflowLoss(t *testing.T, uri, run string) map[int64]float64 {
	t.Helper()
	resp, err := http.Get(uri + "/api/2.0/mlflow/metrics/get-history?metric_key=loss&run_id=" + run)
	ok(t, err)
	defer resp.Body.Close()
	var history struct {
		Metrics []struct {
			Step  json.Number
			Value float64
		}
	}
	ok(t, json.NewDecoder(resp.Body).Decode(&history))
	loss := map[int64]float64{}
	for _, m := range history.Metrics {
		step, err := m.Step.Int64()
		ok(t, err)
		loss[step] = m.Value
	}
	return loss
}

// mlflowRead is what MLflow's client reads of a run.
type mlflowRead struct {
	Experiment, Status, Name string
	Params                   map[string]string
	Metrics                  map[string][][2]any
	Artifacts                map[string]string
	Runs                     []string
}

// readsMLflow records a run as two processes would, and reads it after each.
func readsMLflow(t *testing.T, uri string) {
	t.Helper()
	options := logger.MLflowFromEnv(func(name string) string {
		return map[string]string{"MLFLOW_TRACKING_URI": uri, "MLFLOW_EXPERIMENT_NAME": "digits: CNN", "MLFLOW_RUN_NAME": "first"}[name]
	})
	log, err := logger.NewMLflow(options)
	ok(t, err)
	model := filepath.Join(t.TempDir(), "model.bin")
	ok(t, os.WriteFile(model, []byte("weights"), 0o644))
	many := map[string]any{}
	for i := range 150 { // More than fit into one request.
		many["p"+strconv.Itoa(i)] = i
	}
	ok(t, log.Params(many), log.Params(map[string]any{"lr": 0.001}), log.Scalars(1, map[string]float64{"train/loss": 0.5, "Mean Loss (#)": math.NaN()}),
		log.Artifact(model), log.Image(2, "samples", picture(color.White)))
	if got := readBack[mlflowRead](t, "mlflow", uri, log.RunID()); got.Status != "RUNNING" {
		t.Errorf("before Close the run is %s", got.Status)
	}
	ok(t, log.Close())

	options.RunID = log.RunID()
	log, err = logger.NewMLflow(options)
	ok(t, err)
	ok(t, log.Params(map[string]any{"lr": 0.001}), log.Scalars(2, map[string]float64{"train/loss": 0.25}))
	if err := log.Params(map[string]any{"lr": 0.002}); err == nil || !strings.Contains(err.Error(), "lr") {
		t.Errorf("a parameter that changes: %v, want an error that names it", err)
	}
	ok(t, log.Close())

	got := readBack[mlflowRead](t, "mlflow", uri, options.RunID)
	if len(got.Params) != 151 || got.Params["lr"] != "0.001" || got.Params["p149"] != "149" {
		t.Errorf("%d parameters: %v", len(got.Params), got.Params)
	}
	sample, err := base64.StdEncoding.DecodeString(got.Artifacts["images/samples/step-00000002.png"])
	if img, _, bad := image.Decode(bytes.NewReader(sample)); err != nil || bad != nil || img.Bounds().Dx() != 5 {
		t.Errorf("the image: %v, %v", err, bad)
	}
	delete(got.Artifacts, "images/samples/step-00000002.png")
	got.Params = nil
	same(t, mlflowRead{
		Experiment: "digits: CNN", Status: "FINISHED", Name: "first", Runs: []string{options.RunID},
		Metrics:   map[string][][2]any{"train/loss": {{1.0, "0.5"}, {2.0, "0.25"}}, "Mean Loss ___": {{1.0, "nan"}}},
		Artifacts: map[string]string{"model.bin": base64.StdEncoding.EncodeToString([]byte("weights"))},
	}, got)

	options.RunID = strings.Repeat("0", 32)
	if _, err := logger.NewMLflow(options); err == nil || !strings.Contains(err.Error(), options.RunID) {
		t.Errorf("a run that does not exist: %v, want an error that names it", err)
	}
}

// mlflow is the tracking server of all tests, which takes long to start: its address, and what ends
// it.
var mlflow struct {
	once    sync.Once
	address string
	end     func()
}

// mlflowServer returns the address of the tracking server of all tests. Each test has experiments
// of its own.
func mlflowServer(t *testing.T) string {
	t.Helper()
	mlflow.once.Do(func() { mlflow.address, mlflow.end = startMLflow(t) })
	if mlflow.address == "" {
		t.Fatal("MLflow's server didn't start: see the first test that needs it")
	}
	return mlflow.address
}

// startMLflow starts a tracking server, at another port if a program took the first one while
// Python loaded.
func startMLflow(t *testing.T) (address string, end func()) {
	t.Helper()
	const attempts = 3
	var log string
	for range attempts {
		if address, log, end = tryMLflow(t); address != "" {
			return address, end
		}
		end()
		if !strings.Contains(log, "address already in use") {
			break
		}
	}
	t.Fatalf("MLflow's server didn't start within %v:\n%s", patience, log)
	return "", nil
}

// tryMLflow returns no address but what the server wrote if it doesn't answer.
func tryMLflow(t *testing.T) (address, log string, end func()) {
	t.Helper()
	at := ranktest.FreeAddress(t)
	_, port, _ := strings.Cut(at, ":")
	dir, err := os.MkdirTemp("", "gonbatch-mlflow-") // It outlives the test.
	ok(t, err)
	cmd := exec.Command(readers(t, "mlflow"), "server", "--host", "127.0.0.1", "--port", port, "--workers", "1",
		"--backend-store-uri", "sqlite:///"+filepath.Join(dir, "runs.sqlite"), "--artifacts-destination", filepath.Join(dir, "artifacts"))
	output, err := os.Create(filepath.Join(dir, "server.log"))
	ok(t, err)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, append(os.Environ(), readersEnv...), output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // It starts workers, which must end with it.
	ok(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	end = func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		_ = os.RemoveAll(dir)
	}
	if !answers("http://"+at+"/health", ended) {
		text, _ := os.ReadFile(output.Name())
		return "", string(text), end
	}
	return "http://" + at, "", end
}

// answers reports whether a server answers with success before it ends.
func answers(address string, ended <-chan struct{}) bool {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{}}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if resp, err := client.Get(address); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ended:
			return false
		case <-time.After(200 * time.Millisecond):
		}
	}
	return false
}
