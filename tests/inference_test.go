package tests

import (
	"regexp"
	"strconv"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// TestInference measures small batches on one rank, and on up to three.
func TestInference(t *testing.T) {
	tier.Long(t)
	for tasks, lines := range map[string]int{"1": 2, "3": 6} {
		t.Run(tasks+" ranks", func(t *testing.T) {
			u := newUser(t, ranktest.QuickCompilation)
			out := u.mustSubmit(t, "--local", "--tasks", tasks, example(t, "inference.ipynb"), "--", "-sizes", "1,8", "-period", "200ms")
			checkSpeeds(t, out, lines)
			wantAll(t, out, "devices: "+tasks+", batch   8: median ")
			checkRecorded(t, u.run(t), 2)
		})
	}
}

// inferOnTwoNodes measures one device and both on a cluster.
func inferOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
	out := u.mustSubmit(t, "--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "inference.ipynb"),
		"--", "-sizes", "1,8", "-period", "200ms")
	checkSpeeds(t, out, 4)
	wantAll(t, out, "devices: 1, batch   8: median ", "devices: 2, batch   8: median ")
	checkRecorded(t, u.run(t), 2)
}

// TestInferenceInJupyter executes the notebook in a real Jupyter client.
func TestInferenceInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "inference.ipynb", ranktest.QuickCompilation)
	checkSpeeds(t, result.Outputs[len(result.Outputs)-1], 5)
	checkShown(t, result, 0, 0, 0, 0, 2)
}

// speed matches a line of the notebook's results.
var speed = regexp.MustCompile(`devices: (\d), batch +(\d+): median (\d+\.\d+) ms, 95 % within (\d+\.\d+) ms, (\d+) images/s`)

// checkSpeeds checks that rank 0 alone printed this many results, and that they make sense.
func checkSpeeds(t *testing.T, out string, want int) {
	t.Helper()
	lines := speed.FindAllStringSubmatch(out, -1)
	if len(lines) != want {
		t.Errorf("%d results, want %d:\n%s", len(lines), want, out)
	}
	for _, line := range lines {
		var values []float64
		for _, text := range line[1:] {
			value, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatalf("%s: %v", line[0], err)
			}
			values = append(values, value)
		}
		median, most, throughput := values[2], values[3], values[4]
		if median <= 0 || most < median || throughput <= 0 {
			t.Errorf("%s: the latencies must be positive and in order, and the throughput positive", line[0])
		}
	}
}
