package tests

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/submit/result"
	"gonbatch/trainer"
)

func blobNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	return layers.Dense(scope.In("logits"), graph.Tanh(layers.Dense(scope.In("hidden"), x, true, 16)), true, ranktest.Classes)
}

// killVariable is the update after which a rank kills itself.
const killVariable = "TEST_KILL_AFTER"

// trainLogged is what each rank runs: 4 epochs of 12 updates, an image after each epoch, a file,
// and a test at the end.
func trainLogged(t *testing.T) {
	world, err := distributed.Init()
	ok(t, err)
	accuracy := metric.NewSparseCategoricalAccuracy("Mean Accuracy", "#acc")
	task := trainer.Supervised(blobNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).Done(), accuracy)
	killAfter, _ := strconv.ParseInt(os.Getenv(killVariable), 10, 64)
	callback := trainer.Callback{
		BatchEnd: func(e *trainer.Event) error {
			if e.Step == killAfter {
				time.Sleep(2 * time.Second) // By then, everything is on disk and at the server.
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return nil
		},
		EpochEnd: func(e *trainer.Event) error {
			return e.Trainer.LogImage("samples", picture(color.NRGBA{R: uint8(e.Step), A: 255}))
		},
	}
	tr, err := trainer.New(world, trainer.Config{
		MaxEpochs: 4, BatchSize: 12, Seed: 3, LogEvery: 4, LogHistogramsEvery: 6, Loggers: []string{"csv", "tensorboard", "curves", "mlflow"},
		Checkpoint: trainer.CheckpointConfig{EverySteps: 5, Monitor: "val/loss", Mode: "max"}, // Later checkpoints are not the best.
	}, task, trainer.WithCallbacks(callback))
	ok(t, err)
	ok(t, tr.LogParams(map[string]any{"width": 16}))
	ok(t, tr.Fit(context.Background(), ranktest.Blobs(145), ranktest.Blobs(40)))
	ok(t, tr.LogArtifact(os.Getenv("TEST_ARTIFACT")))
	_, err = tr.Test(context.Background(), ranktest.Blobs(50))
	ok(t, err, world.Close())
}

// TestTrainerLogs kills a training run with all loggers and resumes it. Each format's own reader
// then sees every update once.
func TestTrainerLogs(t *testing.T) {
	t.Parallel()
	if ranktest.InRank() {
		trainLogged(t)
		return
	}
	readers(t, "mlflow")
	uri := mlflowServer(t)
	for _, ranks := range tier.Fewer([]int{2, 1}, 1) {
		t.Run(fmt.Sprintf("%d ranks", ranks), func(t *testing.T) {
			t.Parallel()
			run, artifact := t.TempDir(), filepath.Join(t.TempDir(), "notes.txt")
			ok(t, os.WriteFile(artifact, []byte("seen"), 0o644))
			env := append([]string{
				"GONBATCH_RUN_DIR=" + run, "GONBATCH_CELL=digits", "GONBATCH_DEVICES=1", "MLFLOW_TRACKING_URI=" + uri,
				"MLFLOW_EXPERIMENT_NAME=" + t.Name(), "TEST_ARTIFACT=" + artifact, ranktest.QuickCompilation,
			}, readersEnv...)
			// The checkpoint of update 20 is the last, so 21 to 24 are logged twice, with a
			// validation and a histogram.
			if out, err := ranktest.Start(t, ranktest.OpenMPI, ranks, append(env, killVariable+"=25")); err == nil {
				t.Fatalf("no rank was killed:\n%s", out)
			}
			for _, what := range []string{"resumes after step 20", "was finished after step 48"} {
				out, err := ranktest.Start(t, ranktest.OpenMPI, ranks, env)
				if err != nil || !strings.Contains(out, what) || strings.Contains(out, "logger") {
					t.Fatalf("%v, want %q and no message from a logger:\n%s", err, what, out)
				}
			}
			board := readBack[tensorboardRead](t, "tensorboard", filepath.Join(run, "tensorboard", "digits"))
			recorded := readBack[mlflowRead](t, "mlflow", uri, mlflowRunID(t, run))
			checkScalars(t, run, board, recorded)
			checkTensorBoard(t, board)
			checkMLflow(t, run, recorded)
			checkModel(t, run, uri)
			if got := result.At(run).Params(); got["learning_rate"] != "0.01" || got["width"] != "16" || got["dataset"] != "blobs" || got["seed"] != "3" {
				t.Errorf("the hyper-parameters in the run directory are %v", got)
			}
			for _, picture := range []string{"loss.png", "accuracy.png", "images/samples/step-00000048.png"} {
				if size := pngSize(t, filepath.Join(run, "curves", picture)); size.X < 5 {
					t.Errorf("%s has the size %v", picture, size)
				}
			}
		})
	}
}

// every returns the multiples of step up to 48.
func every(step int) (steps []float64) {
	for at := step; at <= 48; at += step {
		steps = append(steps, float64(at))
	}
	return steps
}

// wantedScalars are the steps at which each metric is logged.
var wantedScalars = map[string][]float64{
	"train/loss": every(4), "train/learning_rate": every(4), "val/loss": every(12), "val/accuracy": every(12), "test/accuracy": {48},
}

// checkScalars compares the steps of metrics in all four formats, and their values with those in
// metrics.jsonl.
func checkScalars(t *testing.T, run string, board tensorboardRead, recorded mlflowRead) {
	t.Helper()
	found := map[string]map[string][][2]any{
		"metrics.jsonl": byMetric(readBack[[]map[string]string](t, "jsonlines", filepath.Join(run, "metrics.jsonl"))),
		"metrics.csv":   byMetric(readBack[[]map[string]string](t, "csv", filepath.Join(run, "metrics.csv"))),
		"MLflow":        recorded.Metrics,
		"TensorBoard":   board.Scalars,
	}
	for name, steps := range wantedScalars {
		for format, metrics := range found {
			var got []float64
			for i, point := range metrics[name] {
				step, _ := point[0].(float64)
				got = append(got, step)
				if want := found["metrics.jsonl"][name]; i < len(want) && math.Abs(number(t, point[1])-number(t, want[i][1])) > 1e-6 {
					t.Errorf("%s in %s is %v at step %g, and %v in metrics.jsonl", name, format, point[1], step, want[i][1])
				}
			}
			if format == "TensorBoard" {
				got = slices.Compact(got) // A repeated test has a second event.
			}
			if !slices.Equal(got, steps) {
				t.Errorf("%s in %s has the steps %v, want %v", name, format, got, steps)
			}
		}
	}
}

func number(t *testing.T, text any) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(fmt.Sprint(text), 64)
	ok(t, err)
	return x
}

// byMetric turns rows into points.
func byMetric(rows []map[string]string) map[string][][2]any {
	metrics := map[string][][2]any{}
	for _, row := range rows {
		step, _ := strconv.ParseFloat(row["step"], 64)
		for name, value := range row {
			if name != "step" {
				metrics[name] = append(metrics[name], [2]any{step, value})
			}
		}
	}
	return metrics
}

func checkTensorBoard(t *testing.T, got tensorboardRead) {
	t.Helper()
	if len(got.Histograms) != 8 {
		t.Errorf("%d histograms, want those of 4 weights and their gradients", len(got.Histograms))
	}
	for name, size := range map[string]float64{"weights/hidden/dense/weights": 1024, "gradients/hidden/dense/weights": 1024, "gradients/logits/dense/biases": 4} {
		var steps []float64
		for _, h := range got.Histograms[name] {
			if steps = append(steps, h[0]); h[1] != size || h[2] != size {
				t.Errorf("%s at step %g has %g values, %g in buckets, want %g", name, h[0], h[1], h[2], size)
			}
		}
		if !slices.Equal(steps, every(6)) {
			t.Errorf("%s has the steps %v", name, steps)
		}
	}
	var images []float64
	for _, image := range got.Images["samples"] {
		step, _ := image["step"].(float64)
		images = append(images, step)
		same(t, []any{step, 0.0, 0.0}, image["first"])
	}
	if !slices.Equal(images, every(12)) {
		t.Errorf("images of the steps %v", images)
	}
	for name, want := range map[string]any{"batch_size": "12", "max_epochs": "4", "dataset": "blobs", "learning_rate": "0.01", "optimizer": "optimizer.adam", "width": "16"} {
		if fmt.Sprint(got.HParams[name]) != want {
			t.Errorf("hyper-parameter %s is %v, want %v", name, got.HParams[name], want)
		}
	}
}

func checkMLflow(t *testing.T, run string, got mlflowRead) {
	t.Helper()
	if got.Status != "FINISHED" || got.Name != filepath.Base(run)+"/digits" || len(got.Runs) != 1 || got.Params["max_epochs"] != "4" || got.Params["learning_rate"] != "0.01" || got.Params["width"] != "16" {
		t.Errorf("status %s, name %s, %d runs, parameters %v", got.Status, got.Name, len(got.Runs), got.Params)
	}
	if got.Artifacts["notes.txt"] != base64.StdEncoding.EncodeToString([]byte("seen")) || got.Artifacts["images/samples/step-00000024.png"] == "" {
		t.Errorf("artifacts: %v", got.Artifacts)
	}
	weights, err := os.ReadFile(filepath.Join(run, "checkpoints", "digits", "step-00000048", "model.safetensors"))
	ok(t, err)
	if got.Artifacts["model/model.safetensors"] != base64.StdEncoding.EncodeToString(weights) {
		t.Error("the model in MLflow is not that of the last checkpoint")
	}
}

// checkModel reads the model as users of MLflow do.
func checkModel(t *testing.T, run, uri string) {
	t.Helper()
	id := mlflowRunID(t, run)
	same(t, modelRead{
		Flavors: map[string]map[string]string{"safetensors": {"data": "model.safetensors"}}, Run: id, Path: "model",
		Tensors: map[string][]int{"hidden/dense/weights": {64, 16}, "hidden/dense/biases": {16}, "logits/dense/weights": {16, 4}, "logits/dense/biases": {4}},
	}, readBack[modelRead](t, "model", uri, id))
}

// modelRead is what MLflow and safetensors read of a model.
type modelRead struct {
	Flavors map[string]map[string]string
	Run     string
	Path    string
	Tensors map[string][]int
}

func mlflowRunID(t *testing.T, run string) string {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(run, "mlflow-runs", "digits"))
	ok(t, err)
	return strings.TrimSpace(string(id))
}

func pngSize(t *testing.T, path string) image.Point {
	t.Helper()
	return readPNG(t, path).Bounds().Size()
}

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	ok(t, err)
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return img
}
