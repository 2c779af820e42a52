package tests

import (
	"bytes"
	"encoding/json"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonbatch/internal/rundir"
	"gonbatch/tests/jupyter"
)

// checkLogged checks that a run has one picture of this name, and that it shows something.
func checkLogged(t *testing.T, run rundir.Dir, name string) {
	t.Helper()
	checkFolder(t, filepath.Join(run.Curves(), "images", name))
}

// checkNamed is checkLogged for pictures of one of several training runs of a run.
func checkNamed(t *testing.T, run rundir.Dir, training string, names ...string) {
	t.Helper()
	for _, name := range names {
		checkFolder(t, filepath.Join(run.Curves(), training, "images", name))
	}
}

// checkFolder checks that a folder has one picture, and that it shows something.
func checkFolder(t *testing.T, folder string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.png"))
	if err != nil || len(paths) != 1 {
		t.Errorf("pictures in %s: %q, %v; want one", folder, paths, err)
		return
	}
	content, err := os.ReadFile(paths[0])
	if err != nil {
		t.Error(err)
		return
	}
	checkPicture(t, paths[0], content)
}

// checkRecorded checks that a run's executed notebook shows this many pictures, and that these show
// something.
func checkRecorded(t *testing.T, run rundir.Dir, want int) {
	t.Helper()
	content, err := os.ReadFile(run.Executed())
	if err != nil {
		t.Fatal(err)
	}
	var notebook struct {
		Cells []struct {
			Outputs []struct {
				Data struct {
					PNG []byte `json:"image/png"`
				} `json:"data"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(content, &notebook); err != nil {
		t.Fatalf("%s: %v", run.Executed(), err)
	}
	n := 0
	for _, cell := range notebook.Cells {
		for _, output := range cell.Outputs {
			if len(output.Data.PNG) > 0 {
				checkPicture(t, "a picture in executed.ipynb", output.Data.PNG)
				n++
			}
		}
	}
	if n != want {
		t.Errorf("executed.ipynb has %d pictures, want %d", n, want)
	}
	checkRendered(t, run, want)
}

// checkRendered checks that nbconvert makes a page of a run's executed notebook, with this many
// pictures and without an error.
func checkRendered(t *testing.T, run rundir.Dir, want int) {
	t.Helper()
	nb := executedOf(t, run)
	for i, cell := range nb.Cells {
		if cell.Error != "" {
			t.Errorf("code cell %d of executed.ipynb has failed:\n%s", i+1, cell.Error)
		}
	}
	if n := strings.Count(nb.HTML, `src="data:image/png;base64,`); n != want {
		t.Errorf("nbconvert's page has %d pictures, want %d", n, want)
	}
	for _, failure := range []string{"Traceback (most recent call last)", "panic: "} {
		if strings.Contains(nb.HTML, failure) {
			t.Errorf("nbconvert's page has %q", failure)
		}
	}
}

// checkShown checks that the code cells of an executed notebook show this many pictures, that these
// show something, and that only gonbatch writes to stderr.
func checkShown(t *testing.T, result jupyter.Result, want ...int) {
	t.Helper()
	if len(result.Pictures) != len(want) {
		t.Fatalf("%d code cells, want %d", len(result.Pictures), len(want))
	}
	for cell, pictures := range result.Pictures {
		for line := range strings.Lines(result.Stderr[cell]) {
			if !strings.HasPrefix(line, "gonbatch: ") {
				t.Errorf("code cell %d has on stderr: %q", cell+1, line)
			}
		}
		if len(pictures) != want[cell] {
			t.Errorf("code cell %d shows %d pictures, want %d:\n%s", cell+1, len(pictures), want[cell], result.Outputs[cell])
		}
		for _, content := range pictures {
			checkPicture(t, "a picture in Jupyter", content)
		}
	}
}

// checkPicture checks that a PNG shows something: it is large enough to look at, and not almost all
// of one colour.
func checkPicture(t *testing.T, name string, content []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	seen, most := map[color.Color]int{}, 0
	size := picture.Bounds()
	for y := size.Min.Y; y < size.Max.Y; y++ {
		for x := size.Min.X; x < size.Max.X; x++ {
			c := color.NRGBAModel.Convert(picture.At(x, y))
			seen[c]++
			most = max(most, seen[c])
		}
	}
	all := size.Dx() * size.Dy()
	if size.Dx() < 100 || size.Dy() < 100 || most > all*98/100 || len(seen) < 8 {
		t.Errorf("%s: %v pixels, %d of %d of one colour, %d colours: it is blank", name, size.Size(), most, all, len(seen))
	}
}
