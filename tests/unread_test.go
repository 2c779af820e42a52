package tests

import (
	"strings"
	"testing"
)

// dropping is a notebook whose programs drop errors, each in its own way.
var dropping = []string{
	"import (\n\t\"gonbatch/data\"\n\t\"gonbatch/distributed\"\n\t\"gonbatch/trainer\"\n\t\"github.com/gomlx/gomlx/core/graph\"\n\t\"github.com/gomlx/gomlx/core/tensors\"\n" +
		"\t\"github.com/gomlx/gomlx/ml/layers\"\n\t\"github.com/gomlx/gomlx/ml/model\"\n\t\"github.com/gomlx/gomlx/ml/train/loss\"\n)",
	`var how = flag.String("how", "", "the way")
func net(scope *model.Scope, x *graph.Node) *graph.Node { return layers.Dense(scope, x, true, 1) }
func examples(n int) data.Dataset {
	ds, err := data.Tensors("few", []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, n), n, 1)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(make([]float32, n), n, 1)})
	if err != nil {
		log.Fatal(err)
	}
	return ds
}
func opened() (*distributed.World, *trainer.Trainer) {
	w, err := distributed.Init()
	if err != nil {
		log.Fatal(err)
	}
	t, err := trainer.New(w, trainer.Config{}, trainer.Supervised(net, loss.MeanSquaredError, trainer.SGD{LearningRate: 0.1}))
	if err != nil {
		log.Fatal(err)
	}
	return w, t
}
// run trains on less than a batch, which fails.
func run() error {
	w, t := opened()
	defer w.Close()
	return t.Fit(context.Background(), examples(8), nil)
}`,
	`%%
ctx := context.Background()
switch *how {
case "Init":
	os.Setenv("GONBATCH_PLATFORM", "tpu")
	w, _ := distributed.Init()
	defer w.Close()
	trainer.New(w, trainer.Config{}, trainer.Task{})
	return
case "nil Init":
	os.Setenv("GONBATCH_PLATFORM", "tpu")
	w, err := distributed.Init()
	defer w.Close()
	fmt.Println("looked", err)
	return
case "caller":
	if err := run(); err != nil {
		fmt.Println("the caller:", err)
		os.Exit(3)
	}
case "no caller":
	_ = run()
	return
}
w, t := opened()
defer w.Close()
switch *how {
case "Fit":
	_ = t.Fit(ctx, examples(8), nil)
case "New":
	t, _ = trainer.New(w, trainer.Config{MaxEpochs: -1}, trainer.Task{})
	_ = t.Fit(ctx, examples(80), nil)
case "dataset":
	var none data.Dataset
	_ = t.Fit(ctx, none, nil)
case "Test":
	metrics, _ := t.Test(ctx, nil)
	fmt.Println(metrics["test/loss"])
case "compared":
	if err := t.Predict(ctx, nil, nil); err != nil {
		return
	}
case "panics":
	if err := t.Fit(ctx, examples(8), nil); err != nil {
		panic(err)
	}
case "handled":
	var stopped *trainer.StoppedError
	fmt.Println(errors.As(t.Fit(ctx, examples(8), nil), &stopped))
case "printed":
	fmt.Println(t.Fit(ctx, examples(8), nil))
case "stopped":
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := t.Fit(stopped, examples(80), nil); err != nil {
		return
	}
}`,
}

// TestDroppedErrors: a job that drops an error fails, with the error and the call, whatever it does
// after it; one that has looked at it decides itself.
func TestDroppedErrors(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	notebook := u.write(t, "dropping.ipynb", dropping...)
	for _, test := range []struct {
		how, want string
		fails     bool
	}{
		{"Fit", "trainer.Fit (dropping.ipynb", true},
		{"New", "trainer.New (dropping.ipynb", true},
		{"Init", "distributed.Init (dropping.ipynb", true},
		{"nil Init", "looked distributed: ", false},
		{"dataset", "the training set is nil: check the error of the function that makes it", true},
		{"Test", "trainer.Test (dropping.ipynb", true},
		{"compared", "trainer.Predict (dropping.ipynb", true},
		{"panics", "panic: trainer: ", true},
		{"handled", "false", false},
		{"printed", "trainer: ", false},
		{"stopped", "", false},
		{"caller", "the caller: trainer: ", true},
		{"no caller", "trainer.Fit (dropping.ipynb", false},
	} {
		t.Run(test.how, func(t *testing.T) {
			out, err := u.submit(t, "--local", notebook, "--", "-how", test.how)
			looked := test.how == "handled" || test.how == "printed" || test.how == "stopped" || test.how == "panics" || test.how == "nil Init"
			if (err != nil) != test.fails || !strings.Contains(out, test.want) || looked && strings.Contains(out, "nobody") {
				t.Errorf("%v, want failure: %v, with %q:\n%s", err, test.fails, test.want, out)
			}
		})
	}
}
