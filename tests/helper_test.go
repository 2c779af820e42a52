package tests

import (
	"strings"
	"testing"
)

// TestHelperErrors checks that an error in a helper also names the line of the main cell that
// called it, and that an error in a model names the line of the layer.
func TestHelperErrors(t *testing.T) {
	t.Parallel()
	declarations := withTrainer.cells[1]
	shape := "func small(scope *model.Scope, x *graph.Node) *graph.Node {\n\tx = graph.Reshape(x, 7, 5)\n\treturn layers.Dense(scope, x, true, 4)\n}"
	u := newUser(t)
	name := u.writeTagged(t, "helper.ipynb", taggedCell{declarations, ""}, taggedCell{shape, ""},
		taggedCell{"%%\nfmt.Println(1)\ncheck(os.ErrNotExist)", "fatal"},
		taggedCell{"%%\nif err := os.ErrNotExist; err != nil {\n\tfunc() { panic(err) }()\n}", "panics"},
		taggedCell{"%%\nworld, err := distributed.Init()\ncheck(err)\ntask := trainer.Supervised(small, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done())\n" +
			"t, err := trainer.New(world, trainer.Config{BatchSize: 10, Loggers: []string{\"none\"}}, task)\ncheck(err)\ncheck(t.Fit(context.Background(), blobs{}, nil))", "train"})
	for _, tt := range []struct {
		cell string
		want []string
	}{
		{"fatal", []string{"helper.ipynb, cell 1 (id cell-a), line 55:\n\tlog.Fatal(err)\n", "called from helper.ipynb, cell 3 (id cell-c), line 3:\n\tcheck(os.ErrNotExist)\n"}},
		{"panics", []string{"helper.ipynb, cell 4 (id cell-d), line 3:\n"}},
		{"train", []string{"(in main.small at helper.ipynb[cell 2]:2)", "called from helper.ipynb, cell 5 (id cell-e), line 7:\n\tcheck(t.Fit("}},
	} {
		t.Run(tt.cell, func(t *testing.T) {
			out, err := u.submit(t, "--local", "--cell", tt.cell, name)
			if err == nil {
				t.Error("it succeeded")
			}
			wantAll(t, out, tt.want...)
			if strings.Contains(out, "graphFn") {
				t.Errorf("how GoMLX builds graphs, in %s", out)
			}
		})
	}
}
