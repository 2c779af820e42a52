package trainer_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"gonbatch/data"
	"gonbatch/distributed"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/bounded"
	"gonbatch/trainer"
)

// envDrops names the program that TestDroppedErrors is.
const envDrops = "TEST_DROPS"

// TestDroppedErrors: a program that drops an error ends with a failure that has the error and the
// call, whatever it does after it; one that has looked at it decides itself.
func TestDroppedErrors(t *testing.T) {
	if name := os.Getenv(envDrops); name != "" {
		drops[name](t)
		return
	}
	for name, want := range map[string]string{
		"Fit":      "trainer.Fit (",
		"New":      "trainer.New (",
		"Init":     "distributed.Init (",
		"dataset":  "the training set is nil: check the error of the function that makes it",
		"Test":     "trainer.Test (",
		"returned": "trainer.Predict (",
		"panics":   "panic: trainer: main: ",
		"handled":  "",
		"printed":  "",
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestDroppedErrors$")
			cmd.Env = append(os.Environ(), envDrops+"="+name)
			out, err := bounded.CombinedOutput(cmd)
			if _, failed := errors.AsType[*exec.ExitError](err); failed != (want != "") || !strings.Contains(string(out), want) || name == "panics" && strings.Contains(string(out), "nobody") {
				t.Errorf("%v, want an error with %q:\n%s", err, want, out)
			}
		})
	}
}

// drops are programs. A training of no epoch fails.
var drops = map[string]func(t *testing.T){
	"Fit": func(t *testing.T) {
		w, tr := opened(t)
		defer func() { _ = w.Close() }()
		_ = tr.Fit(t.Context(), ranktest.Blobs(8), nil)
		fmt.Println("trained")
	},
	"New": func(t *testing.T) {
		w, _ := opened(t)
		defer func() { _ = w.Close() }()
		tr, _ := trainer.New(w, trainer.Config{MaxEpochs: -1}, sgdTask(0.1))
		_ = tr.Fit(t.Context(), ranktest.Blobs(80), nil) // Panics.
	},
	"Init": func(t *testing.T) {
		t.Setenv("GONBATCH_PLATFORM", "tpu")
		w, _ := distributed.Init()
		defer func() { _ = w.Close() }()
	},
	"dataset": func(t *testing.T) {
		w, tr := opened(t)
		defer func() { _ = w.Close() }()
		var set data.Dataset
		_ = tr.Fit(t.Context(), set, nil)
	},
	"Test": func(t *testing.T) {
		w, tr := opened(t)
		metrics, _ := tr.Test(t.Context(), ranktest.Blobs(0))
		fmt.Println(metrics["test/loss"])
		_ = w.Close()
	},
	"returned": func(t *testing.T) {
		w, tr := opened(t)
		defer func() { _ = w.Close() }()
		if err := tr.Predict(t.Context(), ranktest.Blobs(0), nil); err != nil {
			return
		}
	},
	"panics": func(t *testing.T) {
		w, tr := opened(t)
		defer func() { _ = w.Close() }()
		if err := tr.Fit(t.Context(), ranktest.Blobs(8), nil); err != nil {
			panic(err)
		}
	},
	"handled": func(t *testing.T) {
		w, tr := opened(t)
		defer func() { _ = w.Close() }()
		if stopped, ok := errors.AsType[*trainer.StoppedError](tr.Fit(t.Context(), ranktest.Blobs(8), nil)); ok {
			fmt.Println(stopped.Step)
		}
	},
	"printed": func(t *testing.T) {
		w, tr := opened(t)
		defer func() { _ = w.Close() }()
		fmt.Println(tr.Fit(t.Context(), ranktest.Blobs(8), nil))
	},
}

// opened returns a trainer for batches of 64.
func opened(t *testing.T) (*distributed.World, *trainer.Trainer) {
	w, err := distributed.Init()
	if err != nil {
		t.Fatal(err)
	}
	tr, err := trainer.New(w, trainer.Config{Loggers: []string{"none"}}, sgdTask(0.1))
	if err != nil {
		t.Fatal(err)
	}
	return w, tr
}
