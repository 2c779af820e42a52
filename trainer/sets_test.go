package trainer_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/core/tensors/numpy"

	"gonbatch/data"
	"gonbatch/data/packed"
	"gonbatch/data/table"
	"gonbatch/data/tarset"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// TestSetsInFiles: a training on tar files, CSV files or packed files has the weights of one on the
// same examples in memory, bit for bit, even if it is killed and resumes.
func TestSetsInFiles(t *testing.T) { everywhere(t, testSetsInFiles) }

func testSetsInFiles(t *testing.T) {
	const n = 67
	c := trainer.Config{MaxEpochs: 2, BatchSize: 12, Seed: 3, DropLast: new(false), Loggers: []string{"none"}}
	want, _ := newTrainer(t, c, blobTask(smallNet))
	if err := want.Fit(t.Context(), ranktest.Blobs(n), nil); err != nil {
		t.Fatal(err)
	}
	for i, open := range []func(*testing.T, int) (data.Dataset, error){blobShards, blobTable, blobPacked} {
		c.Checkpoint = trainer.CheckpointConfig{EverySteps: 2, Dir: t.TempDir()}
		for _, kill := range []int64{5, 7, 0} {
			ds, err := open(t, n)
			if err != nil {
				t.Fatal(err)
			}
			tr, _ := newTrainer(t, c, blobTask(smallNet), killAt(kill))
			if err := tr.Fit(t.Context(), ds, nil); kill > 0 && !errors.Is(err, errKilled) || kill == 0 && err != nil {
				t.Fatalf("set %d, killed after step %d: %v", i, kill, err)
			}
			if kill == 0 {
				compareWeights(t, weights(t, tr.Store()), weights(t, want.Store()))
			}
		}
	}
}

// blobShards writes blobs into three tar files.
func blobShards(t *testing.T, n int) (data.Dataset, error) {
	t.Helper()
	dir := t.TempDir()
	for shard := range 3 {
		var file bytes.Buffer
		w := tar.NewWriter(&file)
		for i := shard * n / 3; i < (shard+1)*n/3; i++ {
			x, y := blob(t, i)
			var array bytes.Buffer
			if err := numpy.ToNpyWriter(tensors.FromFlatDataAndDimensions(x, ranktest.Side, ranktest.Side, 1), &array); err != nil {
				return nil, err
			}
			for extension, content := range map[string][]byte{"npy": array.Bytes(), "cls": fmt.Append(nil, y)} {
				err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%03d.%s", i, extension), Size: int64(len(content)), Mode: 0o644})
				if _, writeErr := w.Write(content); err != nil || writeErr != nil {
					return nil, errors.Join(err, writeErr)
				}
			}
		}
		if err := errors.Join(w.Close(), os.WriteFile(filepath.Join(dir, fmt.Sprintf("blobs-%d.tar", shard)), file.Bytes(), 0o600)); err != nil {
			return nil, err
		}
	}
	return tarset.Open(filepath.Join(dir, "blobs-{0..2}.tar"), tarset.Config{
		Inputs: []tarset.Field{tarset.NumPy()}, Labels: []tarset.Field{tarset.Class()}, Dir: filepath.Join(dir, "index"),
	})
}

// blobTable writes blobs into two CSV files.
func blobTable(t *testing.T, n int) (data.Dataset, error) {
	t.Helper()
	dir := t.TempDir()
	for part := range 2 {
		var text strings.Builder
		for pixel := range ranktest.Side * ranktest.Side {
			fmt.Fprintf(&text, "%d,", pixel)
		}
		text.WriteString("class\n")
		for i := part * n / 2; i < (part+1)*n/2; i++ {
			x, y := blob(t, i)
			for _, value := range x {
				fmt.Fprintf(&text, "%v,", value)
			}
			fmt.Fprintln(&text, y)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("blobs-%d.csv", part)), []byte(text.String()), 0o600); err != nil {
			return nil, err
		}
	}
	return table.CSV(filepath.Join(dir, "blobs-*.csv"), table.Config{Class: "class", Dir: filepath.Join(dir, "kept")})
}

// blobPacked writes blobs into two packed files.
func blobPacked(t *testing.T, n int) (data.Dataset, error) {
	t.Helper()
	dir := t.TempDir()
	for part := range 2 {
		if err := packed.Write(filepath.Join(dir, fmt.Sprint("blobs-", part)), data.Range(ranktest.Blobs(n), part*n/2, (part+1)*n/2), packed.Config{}); err != nil {
			return nil, err
		}
	}
	return packed.Open(filepath.Join(dir, "blobs-{0,1}"))
}

// blob returns the pixels and the class of a blob.
func blob(t *testing.T, i int) (pixels []float32, class int32) {
	t.Helper()
	x, y, err := ranktest.Blobs(i + 1).Batch([]int{i})
	if err != nil {
		t.Fatal(err)
	}
	return tensors.MustCopyFlatData[float32](x[0]), tensors.MustCopyFlatData[int32](y[0])[0]
}
