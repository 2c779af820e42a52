package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gonbatch/tests/browser"
	"gonbatch/tests/cluster"
)

// cellLimit is how long a cell may take on a busy machine.
const cellLimit = 10 * time.Minute

// TestBrowser plays a user in JupyterLab on the login node of a real cluster: run and submit the
// example notebook, follow the job on the page until it completes, use its result, and cancel
// another job.
func TestBrowser(t *testing.T) {
	c := cluster.Start(t)
	settings := c.Env()
	if testing.Short() {
		settings = append(settings, "TRAINER_LIMIT_TRAIN_BATCHES=300")
	}
	u := newUser(t, settings...)
	env := u.kernelEnv(t)
	u.copyMNIST(t)
	lab := browser.Open(t, browser.Options{Folder: u.folder, DataDir: strings.TrimPrefix(env[0], "JUPYTER_DATA_DIR="), Env: env})

	lab.Notebook("mnist.ipynb")
	lab.Screenshot("opened")
	lab.Menu("Run", "Run All Cells")
	training := lab.Count() - 1
	lab.Ended(training, cellLimit)
	lab.Shows(training, "test/accuracy 0.9", cellLimit)
	lab.Screenshot("trained")

	card := lab.Run("%submit --nodes 2 --cpus-per-task 1")
	lab.Shows(card, ": running", cellLimit)
	lab.ScreenshotCell("running", card)
	lab.Shows(card, "train/loss", cellLimit)
	lab.Resize(1280, 1160) // The README shows the whole card.
	lab.Screenshot("live")
	lab.Resize(1280, 900)
	lab.Shows(card, ": completed", cellLimit)
	lab.ScreenshotCell("completed", card)
	wantAll(t, lab.Output(card), "submitting this session: 4 cells", "test/accuracy 0.9", "train/loss")
	if curves := lab.Find(card, "svg polyline"); curves != 1 {
		t.Errorf("the card has %d curves, want only the loss", curves)
	}
	useResult(t, lab)
	cancelIn(t, lab)
	lookAgain(t, lab, card)
}

// useResult uses the job's values in a cell.
func useResult(t *testing.T, lab *browser.Lab) {
	t.Helper()
	result := lab.Run("%result as run\nrun.Last(\"test/accuracy\")")
	lab.Ended(result, cellLimit)
	// The tag of the training cell names its checkpoints.
	wantAll(t, lab.Output(result), "completed", "checkpoints/train/step-00000250", "loss.png", "run.Images()", "\n0.9")
	lab.ScreenshotCell("result", result)
	image := lab.Run("run.Image(\"loss\")")
	lab.Ended(image, cellLimit)
	if images := lab.Find(image, "img"); images != 1 {
		t.Errorf("the cell shows %d images, want one: %s", images, lab.Output(image))
	}
	unknown := lab.Run("%result 404")
	lab.Ended(unknown, cellLimit)
	wantAll(t, lab.Output(unknown), "%result: ", `no run "404"`)
}

// cancelIn cancels a job: its card shows that.
func cancelIn(t *testing.T, lab *browser.Lab) {
	t.Helper()
	endless := lab.Run("%%submit --nodes 2 --mpi none --name endless\ntime.Sleep(time.Hour)")
	lab.Shows(endless, ": running", cellLimit)
	lab.Ended(lab.Run("%cancel"), cellLimit)
	lab.Shows(endless, ": cancelled", cellLimit)
	lab.ScreenshotCell("cancelled", endless)
}

// lookAgain reopens the saved notebook: the card shows what it showed before, and fits into a
// narrow, dark window.
func lookAgain(t *testing.T, lab *browser.Lab, card int) {
	t.Helper()
	lab.Save()
	lab.Reload()
	wantAll(t, lab.Output(card), ": completed", "train/loss")
	if curves := lab.Find(card, "svg polyline"); curves != 1 {
		t.Errorf("the saved card has %d curves, want only the loss", curves)
	}
	lab.Menu("Settings", "Theme", "JupyterLab Dark")
	lab.Resize(900, 700)
	lab.ScreenshotCell("dark", card)
	if wide := lab.Overflow(card); wide > 0 {
		t.Errorf("the card is %d pixels wider than its cell", wide)
	}
}

// copyMNIST copies the example notebook to the user's folder, with 250 steps of training instead of
// two epochs.
func (u user) copyMNIST(t *testing.T) {
	t.Helper()
	text := read(t, mnist(t))
	const seed = `"\tSeed:      *seed,\n",`
	shorter := strings.Replace(text, seed, seed+` "\tMaxSteps:  250,\n",`, 1)
	if shorter == text {
		t.Fatalf("the notebook has no line %s after which to set a limit", seed)
	}
	if err := os.WriteFile(filepath.Join(u.folder, "mnist.ipynb"), []byte(shorter), 0o644); err != nil {
		t.Fatal(err)
	}
}
