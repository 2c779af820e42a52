package tests

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/tests/cluster"
)

// TestDataLoading runs the notebook on drawn faces. Its disk is so far that waiting for it, and not
// decoding, takes most of the time, however busy the machine is.
func TestDataLoading(t *testing.T) {
	tier.Long(t)
	u := newUser(t, ranktest.QuickCompilation)
	out := u.mustSubmit(t, "--local", example(t, "data_loading.ipynb"), "--", "-repeats", "2", "-batches", "6", "-batch", "4", "-far", "60ms")
	checkTimes(t, out)
	checkRecorded(t, u.run(t), 3)
}

// loadOnTwoNodes runs the notebook on a cluster. Only rank 0 loads.
func loadOnTwoNodes(t *testing.T, c *cluster.Cluster) {
	u := newUser(t, append(c.Env(), ranktest.QuickCompilation)...)
	out := u.mustSubmit(t, "--nodes", "2", "--cpus-per-task", "1", "--mpi", "pmix", "--follow", example(t, "data_loading.ipynb"),
		"--", "-repeats", "2", "-batches", "6", "-batch", "4", "-far", "60ms")
	checkTimes(t, out)
	checkRecorded(t, u.run(t), 3)
}

// TestDataLoadingInJupyter executes the notebook in a real Jupyter client.
func TestDataLoadingInJupyter(t *testing.T) {
	tier.Long(t)
	result := inJupyter(t, "data_loading.ipynb", ranktest.QuickCompilation)
	if all := strings.Join(result.Outputs, "\n"); !strings.Contains(all, "[16, 64, 64, 3]") || len(loadingTime.FindAllString(all, -1)) != 14 {
		t.Errorf("want the shape of a batch, and 14 times:\n%s", all)
	}
	checkShown(t, result, 0, 0, 1, 0, 1, 1)
}

// loadingTime matches a line of the notebook's results.
var loadingTime = regexp.MustCompile(`(memory, workers|far disk, workers|prefetch) (\d): (\d+\.\d) ± \d+\.\d ms`)

// checkTimes checks that workers and prefetch save time.
func checkTimes(t *testing.T, out string) {
	t.Helper()
	times := map[string]float64{}
	for _, match := range loadingTime.FindAllStringSubmatch(out, -1) {
		ms, err := strconv.ParseFloat(match[3], 64)
		if err != nil || ms <= 0 {
			t.Errorf("%s: %v", match[0], err)
		}
		times[match[1]+" "+match[2]] = ms
	}
	if len(times) != 14 {
		t.Errorf("%d times, want 14:\n%s", len(times), out)
	}
	// Something else may have used the CPUs during some of them.
	for slow, fast := range map[string][]string{"far disk, workers 1": {"far disk, workers 4", "far disk, workers 8"}, "prefetch 0": {"prefetch 1", "prefetch 2", "prefetch 4"}} {
		least := times[fast[0]]
		for _, name := range fast {
			least = min(least, times[name])
		}
		if least > 0.8*times[slow] {
			t.Errorf("%s takes %.1f ms, all of %q at least %.1f ms:\n%s", slow, times[slow], fast, least, out)
		}
	}
}
