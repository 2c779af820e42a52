package trainer_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/data"
	"gonbatch/data/table"
	"gonbatch/models"
	"gonbatch/trainer"
)

// writeTable writes a file of random rows, compressed.
func writeTable(t *testing.T, path string, rng *rand.Rand, rows int) {
	t.Helper()
	var file bytes.Buffer
	w := gzip.NewWriter(&file)
	text := "a,b,class\n"
	for range rows {
		a, b := rng.NormFloat64(), rng.NormFloat64()
		text += fmt.Sprintf("%.4f,%.4f,%d\n", a, b, int(max(0, min(2, a+b+1))))
	}
	_, err := w.Write([]byte(text))
	err = errors.Join(err, w.Close())
	if err := errors.Join(err, os.WriteFile(path, file.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestTableStream: a training on a stream of compressed CSV files has the same weights with any
// number of workers, and when it is killed and resumes.
func TestTableStream(t *testing.T) { everywhere(t, testTableStream) }

func testTableStream(t *testing.T) {
	rng, dir := rand.New(rand.NewPCG(3, 1)), t.TempDir() // All ranks draw the same.
	for i := range 9 {
		writeTable(t, filepath.Join(dir, fmt.Sprintf("%d.csv.gz", i)), rng, rng.IntN(40))
	}
	open := func() data.Dataset {
		rows, err := table.StreamCSV(filepath.Join(dir, "*.csv.gz"), table.Config{Class: "class"})
		if err != nil {
			t.Fatal(err)
		}
		ds, err := data.FromStream(rows, data.StreamConfig{Examples: 72, Buffer: 36, Lanes: 6})
		if err != nil {
			t.Fatal(err)
		}
		return ds
	}
	task := trainer.Supervised(models.MLP(3, 8), loss.SparseCategoricalCrossEntropyLogits, trainer.SGD{LearningRate: 0.1, Momentum: 0.9})
	c := trainer.Config{MaxEpochs: 4, BatchSize: 12, Seed: 3, Loggers: []string{"none"}, Loader: trainer.LoaderConfig{Workers: -1}}
	want, _ := newTrainer(t, c, task)
	if err := want.Fit(t.Context(), open(), nil); err != nil {
		t.Fatal(err)
	}
	c.Checkpoint = trainer.CheckpointConfig{EverySteps: 2, Dir: t.TempDir()}
	for workers, kill := range []int64{3, 11, 20, 0} {
		c.Loader.Workers = workers + 1
		tr, _ := newTrainer(t, c, task, killAt(kill))
		if err := tr.Fit(t.Context(), open(), nil); kill > 0 && !errors.Is(err, errKilled) || kill == 0 && err != nil {
			t.Fatalf("killed after step %d: %v", kill, err)
		}
		if kill == 0 {
			compareWeights(t, weights(t, tr.Store()), weights(t, want.Store()))
		}
	}
}
