package tests

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
	"gonbatch/tests/cluster"
)

// TestGAN trains the notebook with two models, two losses and two optimizers for two short epochs,
// on one rank and on two, and checks its metrics and samples, and that another network reads them.
// docs/notebooks.md has what it reads after full epochs.
func TestGAN(t *testing.T) {
	for _, tasks := range []string{"1", "2"} {
		t.Run(tasks+" ranks", func(t *testing.T) {
			u := newUser(t, ranktest.QuickCompilation)
			out := u.mustSubmit(t, "--local", "--tasks", tasks, example(t, "gan.ipynb"), "--", "-max_epochs", "2", "-limit_train_batches", "10", "-limit_val_batches", "2", "-log_every", "5")
			checkJudge(t, out)
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
				if !slices.Equal(steps[loss], []int64{5, 10, 15, 20}) {
					t.Errorf("%s at steps %v", loss, steps[loss])
				}
			}
			for _, step := range []int{10, 20} {
				checkSamples(t, filepath.Join(run.Curves(), "images", "samples", fmt.Sprintf("step-%08d.png", step)))
			}
		})
	}
}

// ganFromJupyter executes the notebook in a real Jupyter client on a cluster's login node. It
// shows, saves and submits its own job, on two nodes, and reads the losses.
func ganFromJupyter(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation, "SUBMIT_CPUS_PER_TASK=1", "SUBMIT_MPI=pmix",
		"TRAINER_LIMIT_TRAIN_BATCHES=2", "TRAINER_LIMIT_VAL_BATCHES=1", "TRAINER_LOG_EVERY=1")...)
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
		8: {": completed", "epoch 10/10"},
		9: {"completed", "val/generator_loss"},
	} {
		wantAll(t, result.Outputs[cell], wants...)
	}
	checkShown(t, result, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 1)
}

// judged matches what the notebook's reader prints about the drawn digits.
var judged = regexp.MustCompile(`of 1000 drawn digits, its mean confidence is (\d\.\d+), and it is more than 90 % sure of \d+
(\d+) are the digit that was asked for; zeros to nines: \[(.*)\]`)

// checkJudge checks that rank 0 alone printed what the reader has read, that its confidence can be
// a mean of highest probabilities, and that it has read each image once.
func checkJudge(t *testing.T, out string) {
	t.Helper()
	all := judged.FindAllStringSubmatch(out, -1)
	if len(all) != 1 {
		t.Fatalf("the reader's results: %q; want them once", all)
	}
	if confidence, err := strconv.ParseFloat(all[0][1], 64); err != nil || !(confidence > 0.1 && confidence <= 1) {
		t.Errorf("a mean confidence of %s, want more than 0.1 and at most 1", all[0][1])
	}
	sum := 0
	for _, text := range strings.Fields(all[0][3]) {
		count, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		sum += count
	}
	if sum != 1000 {
		t.Errorf("the reader has read %d images, want 1000: %s", sum, all[0][3])
	}
}

// checkSamples checks a picture of 10 by 10 samples: no two rows of samples may be equal, as they
// would be if the generator ignored its noise.
func checkSamples(t *testing.T, path string) {
	t.Helper()
	grid := readPNG(t, path)
	if got := grid.Bounds().Size(); got.X != 10*29-1 || got.Y != 10*29-1 {
		t.Fatalf("%s: %v pixels, want 10 x 10 images of 28 x 28 and lines between them", path, got)
	}
	seen := map[string]int{}
	for row := range 10 {
		var text strings.Builder
		for y := range 28 {
			for x := range 289 {
				r, _, _, _ := grid.At(x, row*29+y).RGBA()
				fmt.Fprint(&text, r>>8, " ")
			}
		}
		if other, ok := seen[text.String()]; ok {
			t.Errorf("%s: rows %d and %d of the samples are the same", path, other, row)
		}
		seen[text.String()] = row
	}
}
