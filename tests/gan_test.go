package tests

import (
	"encoding/base64"
	"fmt"
	"image"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// TestGAN trains the notebook with two models, two losses and two optimizers for two short epochs,
// on one rank and on two, and checks its metrics and samples, and that another network reads them.
// docs/notebooks.md has what it reads after full epochs.
func TestGAN(t *testing.T) {
	tier.Long(t)
	for _, tasks := range []string{"2", "1"} {
		t.Run(tasks+" ranks", func(t *testing.T) {
			u := newUser(t, "TRAINER_LIMIT_TEST_BATCHES=16")
			out := u.mustSubmit(t, "--local", "--tasks", tasks, example(t, "gan.ipynb"), "--", "-max_epochs", "2", "-limit_train_batches", "30", "-limit_val_batches", "2", "-log_every", "15")
			// The generator can't draw digits yet, but its images are no longer noise: guessing has
			// a confidence of 0.1.
			if got := checkJudge(t, out); got.accuracy < 0.7 || got.confidence < 0.2 || got.confidence > 1 {
				t.Errorf("the reader's accuracy is %g, want at least 0.7; its confidence is %g, want from 0.2 to 1:\n%s", got.accuracy, got.confidence, out)
			}
			run := u.run(t)
			all, err := rundir.ReadMetrics(run)
			if err != nil {
				t.Fatal(err)
			}
			steps := map[string][]int64{}
			for _, m := range all {
				for name := range m.Values {
					steps[name] = append(steps[name], m.Step)
				}
			}
			for _, loss := range []string{"train/generator_loss", "train/discriminator_loss"} {
				if !slices.Equal(steps[loss], []int64{15, 30, 45, 60}) {
					t.Errorf("%s at steps %v", loss, steps[loss])
				}
				checkFinite(t, seriesOf(t, run, "train", loss))
			}
			for _, step := range []int{30, 60} {
				checkSamples(t, filepath.Join(run.Curves(), "images", "samples", fmt.Sprintf("step-%08d.png", step)))
			}
			checkRecorded(t, run, 2)
		})
	}
}

// TestGANInMLflow trains the notebook while a real MLflow server records it, on two ranks, and
// reads both training runs back with MLflow's client: each metric, each hyper-parameter and the
// samples.
func TestGANInMLflow(t *testing.T) {
	tier.Long(t)
	uri := mlflowServer(t)
	u := newUser(t, ranktest.QuickCompilation, "MLFLOW_TRACKING_URI="+uri, "MLFLOW_EXPERIMENT_NAME=digits: GAN", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	out := u.mustSubmit(t, "--local", "--tasks", "2", example(t, "gan.ipynb"),
		"--", "-lr", "3e-4", "-max_epochs", "2", "-limit_train_batches", "10", "-limit_val_batches", "2", "-log_every", "5")
	run := u.run(t)
	logged, err := rundir.ReadParams(run)
	ok(t, err)
	if len(logged) != 2 {
		t.Fatalf("the hyper-parameters of %d training runs, want 2:\n%s", len(logged), out)
	}
	for _, training := range logged {
		got := readBack[mlflowRead](t, "mlflow", uri, strings.TrimSpace(read(t, filepath.Join(run.MLflowRuns(), training.Training))))
		if got.Status != "FINISHED" || got.Experiment != "digits: GAN" || len(got.Runs) != 2 {
			t.Errorf("%s: a run of %q that is %s, one of %d, want one of 2", training.Training, got.Experiment, got.Status, len(got.Runs))
		}
		params := map[string]string{}
		for _, p := range training.Params {
			params[p.Name] = p.Value
		}
		same(t, params, got.Params)
		same(t, loggedMetrics(t, run, training.Training), parsedMetrics(t, got))
		if training.Training == "train" {
			checkGANInMLflow(t, run, got)
		}
	}
}

// checkGANInMLflow checks what only the training of both networks has, by name.
func checkGANInMLflow(t *testing.T, run rundir.Dir, got mlflowRead) {
	t.Helper()
	for name, want := range map[string]string{"max_epochs": "2", "batch_size": "64", "world_size": "2", "limit_train_batches": "10"} {
		if got.Params[name] != want {
			t.Errorf("the hyper-parameter %s is %q, want %s, of %v", name, got.Params[name], want, got.Params)
		}
	}
	for _, name := range []string{"train/generator_loss", "train/discriminator_loss"} {
		if n := len(got.Metrics[name]); n != 4 {
			t.Errorf("%s has %d values, want 4", name, n)
		}
	}
	for _, step := range []int{10, 20} {
		file := fmt.Sprintf("images/samples/step-%08d.png", step)
		sample, err := base64.StdEncoding.DecodeString(got.Artifacts[file])
		ok(t, err)
		if string(sample) != read(t, filepath.Join(run.Curves(), file)) {
			t.Errorf("%s has %d bytes in MLflow: it is not the picture in the run directory", file, len(sample))
		}
	}
}

// loggedMetrics returns the metrics of a training run by name and step, as its run directory has
// them.
func loggedMetrics(t *testing.T, run rundir.Dir, training string) map[string]map[int64]float64 {
	t.Helper()
	all, err := rundir.ReadMetrics(run)
	ok(t, err)
	metrics := map[string]map[int64]float64{}
	for _, m := range all {
		for name, value := range m.Values {
			if m.Training != training {
				continue
			}
			if metrics[name] == nil {
				metrics[name] = map[int64]float64{}
			}
			metrics[name][m.Step] = value
		}
	}
	return metrics
}

// parsedMetrics returns the metrics of a run in MLflow likewise.
func parsedMetrics(t *testing.T, read mlflowRead) map[string]map[int64]float64 {
	t.Helper()
	metrics := map[string]map[int64]float64{}
	for name, points := range read.Metrics {
		metrics[name] = map[int64]float64{}
		for _, point := range points {
			value, err := strconv.ParseFloat(point[1].(string), 64)
			ok(t, err)
			metrics[name][int64(point[0].(float64))] = value
		}
	}
	return metrics
}

// ganFromJupyter executes the notebook in a real Jupyter client on a cluster's login node. It
// shows, saves and submits its own job, on two nodes, and reads the losses.
func ganFromJupyter(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation, "SUBMIT_CPUS_PER_TASK=1", "SUBMIT_MPI=pmix",
		"TRAINER_BATCH_SIZE=16", "TRAINER_MAX_STEPS=4", "TRAINER_LIMIT_TRAIN_BATCHES=2", "TRAINER_LIMIT_VAL_BATCHES=1", "TRAINER_LIMIT_TEST_BATCHES=8", "TRAINER_LOG_EVERY=1")...)
	result := u.execute(t, u.copyExample(t, "gan.ipynb"))
	if result.Error != "" {
		t.Fatalf("%s\n%s", result.Error, result.Log)
	}
	if n := len(result.Outputs); n != 11 {
		t.Fatalf("%d code cells, want 11", n)
	}
	checkJudge(t, result.Outputs[4])
	for cell, wants := range map[int][]string{
		4: {"val/generator_loss", "val/discriminator_loss"},
		5: {"#SBATCH --nodes=2", "-max_epochs 10"},
		6: {"run directory: ", "sbatch "},
		7: {"run directory: ", "job "},
		8: {": completed", "epoch 2/10"},
		9: {"completed", "val/generator_loss"},
	} {
		wantAll(t, result.Outputs[cell], wants...)
	}
	checkShown(t, result, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 1)
}

// judged matches what the notebook's reader prints about the test images and the drawn digits.
var judged = regexp.MustCompile(`the reader's accuracy on the test images is (\d\.\d+)
of 1000 drawn digits, its mean confidence is (\d\.\d+), and it is more than 90 % sure of \d+
(\d+) are the digit that was asked for; zeros to nines: \[(.*)\]`)

// judgement is what the notebook's reader has found.
type judgement struct{ accuracy, confidence float64 }

// checkJudge checks that rank 0 alone printed what the reader has read, and that it has read each
// image once.
func checkJudge(t *testing.T, out string) judgement {
	t.Helper()
	all := judged.FindAllStringSubmatch(out, -1)
	if len(all) != 1 {
		t.Fatalf("the reader's results: %q; want them once", all)
	}
	sum := 0
	for _, text := range strings.Fields(all[0][4]) {
		count, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		sum += count
	}
	if sum != 1000 {
		t.Errorf("the reader has read %d images, want 1000: %s", sum, all[0][4])
	}
	return judgement{number(t, all[0][1]), number(t, all[0][2])}
}

// checkSamples checks a picture of 10 by 10 samples: no two rows of samples may be equal, as they
// would be if the generator ignored its noise.
func checkSamples(t *testing.T, path string) {
	t.Helper()
	const side = 10*29 - 1
	grid := readPNG(t, path)
	size := grid.Bounds().Size()
	caption := size.Y - side
	if size.X != side || caption < 8 || caption > 30 {
		t.Fatalf("%s: %v pixels, want 10 x 10 images of 28 x 28 and lines between them, below a caption", path, size)
	}
	if n := dark(grid, image.Rect(0, 0, side, caption)); n == 0 || n == side*caption {
		t.Errorf("%s: %d dark points in the caption: it has no text", path, n)
	}
	seen := map[string]int{}
	for row := range 10 {
		var text strings.Builder
		for y := range 28 {
			for x := range side {
				r, _, _, _ := grid.At(x, caption+row*29+y).RGBA()
				fmt.Fprint(&text, r>>8, " ")
			}
		}
		if other, ok := seen[text.String()]; ok {
			t.Errorf("%s: rows %d and %d of the samples are the same", path, other, row)
		}
		seen[text.String()] = row
	}
}
