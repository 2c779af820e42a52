package tests

import (
	"strings"
	"testing"

	"gonbatch/tests/cluster"
)

// plainGoMLX is a notebook that does not use gonbatch.
var plainGoMLX = []string{
	"import (\n\t_ \"github.com/gomlx/go-xla/compute/xla\"\n\t\"github.com/gomlx/compute\"\n\t\"github.com/gomlx/gomlx/core/graph\"\n)",
	"%%\nbackend := compute.MustNew()\n" +
		"y := graph.MustExecOnce(backend, func(x *graph.Node) *graph.Node { return graph.ReduceAllSum(graph.Square(x)) }, []float32{1, 2, 3})\n" +
		"fmt.Printf(\"%s: %v\\n\", backend.Name(), y.Value())",
}

// TestPlainGoMLX checks that a program that never imports gonbatch finds XLA in a job, as it does
// in the kernel, on one rank or several, even if the user's shell does not say where XLA is.
func TestPlainGoMLX(t *testing.T) {
	t.Parallel()
	const result = "xla: 14\n"
	hidden := []string{"PJRT_PLUGIN_LIBRARY_PATH=", "GOMLX_NO_AUTO_INSTALL="}
	t.Run("one rank", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, hidden...)
		out := u.mustSubmit(t, "--local", u.write(t, "plain.ipynb", plainGoMLX...))
		wantAll(t, out, result)
		if strings.Contains(out, "warning") {
			t.Errorf("a warning for one rank:\n%s", out)
		}
	})
	t.Run("two ranks", func(t *testing.T) {
		t.Parallel()
		u := newUser(t, hidden...)
		out := u.mustSubmit(t, "--local", "--tasks", "2", u.write(t, "plain.ipynb", plainGoMLX...))
		wantAll(t, out, "plain.ipynb, cell 2: uses GoMLX without package gonbatch/distributed, so each of the 2 ranks computes everything by itself")
		for rank := range 2 {
			wantAll(t, read(t, u.run(t).RankLog(rank)), result)
		}
	})
	t.Run("on the cluster", func(t *testing.T) {
		t.Parallel()
		c := cluster.Start(t)
		u := newUser(t, append(hidden, c.Env()...)...)
		wantAll(t, u.mustSubmit(t, "--follow", u.write(t, "plain.ipynb", plainGoMLX...)), result)
	})
}
