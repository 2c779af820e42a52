package tests

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/rundir"
)

// TestGAN trains the notebook with two models, two losses and two optimizers for two short epochs,
// on one rank and on two, and checks its metrics and samples. Whether it draws digits after full
// epochs is left for people to judge.
func TestGAN(t *testing.T) {
	for _, tasks := range []string{"1", "2"} {
		t.Run(tasks+" ranks", func(t *testing.T) {
			u := newUser(t, ranktest.QuickCompilation)
			u.mustSubmit(t, "--local", "--tasks", tasks, example(t, "gan.ipynb"), "--", "-max_epochs", "2", "-limit_train_batches", "10", "-log_every", "5")
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

// checkSamples checks a picture of 8 by 8 samples: no two rows of samples may be equal, as they
// would be if the generator ignored its noise.
func checkSamples(t *testing.T, path string) {
	t.Helper()
	grid := readPNG(t, path)
	if got := grid.Bounds().Size(); got.X != 8*29-1 || got.Y != 8*29-1 {
		t.Fatalf("%s: %v pixels, want 8 x 8 images of 28 x 28 and lines between them", path, got)
	}
	seen := map[string]int{}
	for row := range 8 {
		var text strings.Builder
		for y := range 28 {
			for x := range 231 {
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
