package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"image"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/logger"
	"gonbatch/trainer"
)

// TestRandomEquivalence: every strategy leaves the weights, the metrics and the checkpoint of one
// device, for random combinations of a network, an optimizer, and the options of a training run,
// also if it is stopped in the middle and another world resumes it.
func TestRandomEquivalence(t *testing.T) {
	if os.Getenv(ordersFolder) != "" {
		obey[equivalent](t)
		return
	}
	n := seeds(t, 12)
	for first := 0; first < n; first += chunk {
		t.Run(fmt.Sprint("seeds from ", first), func(t *testing.T) {
			w := newWorlds[equivalent](t)
			for seed := first; seed < min(n, first+chunk); seed++ {
				compareStrategies(t, w, uint64(seed))
			}
		})
	}
}

// equivalent is an order to train the combination of a seed.
type equivalent struct {
	Seed     uint64
	Strategy string
	Parallel int    // Devices that have parts of the weights.
	Folder   string // Of checkpoints.
	Stop     int64  // The update after which a person stops it; 0 for none.
}

// others are the worlds whose results must be those of one device.
var others = []worldKind{
	{ranktest.OpenMPI, 2, 1}, {ranktest.OpenMPI, 3, 1}, {ranktest.OpenMPI, 4, 1}, {ranktest.MPICH, 2, 1}, {ranktest.MPICH, 3, 1}, {ranktest.MPICH, 4, 1},
	{ranktest.Torchrun, 1, 2}, {ranktest.Torchrun, 1, 4}, {ranktest.Torchrun, 1, 4}, overTCP(1), overTCP(2), overTCP(3), overTCP(4),
}

// drawStrategy draws a strategy for a world.
func drawStrategy(rng *rand.Rand, in worldKind) string {
	switch {
	case in.devices > 1:
		return "spmd"
	case in.ranks == 1:
		return "zero1"
	}
	return []string{"ddp", "zero1", "zero1"}[rng.IntN(3)]
}

// drawParallel draws the number of devices that have parts of the weights.
func drawParallel(rng *rand.Rand, in worldKind) int {
	return []int{1, min(2, in.devices), in.devices, in.devices}[rng.IntN(4)]
}

// divides chooses axes that any number of devices up to 4 divides evenly.
func (c combination) divides(rng *rand.Rand) (all []trainer.Option) {
	choices := []trainer.Option{
		trainer.Divide("/a/hidden/dense/weights", 0), trainer.Divide("/a/logits", 1), trainer.Divide("/a/logits/dense/biases", 0),
		trainer.Divide("/a", trainer.Whole),
	}
	if c.two {
		choices = append(choices, trainer.Divide("/b/logits/dense/weights", 1), trainer.Divide("/b/hidden/dense/weights", 0))
	}
	for _, choice := range choices {
		if rng.IntN(4) > 0 {
			all = append(all, choice)
		}
	}
	return all
}

// compareStrategies trains a combination on one device and in other worlds.
func compareStrategies(t *testing.T, w *worlds[equivalent], seed uint64) {
	rng, folder := rand.New(rand.NewPCG(seed, 4)), t.TempDir()
	c := drawCombination(seed)
	want := w.do(t, overTCP(1), equivalent{Seed: seed, Strategy: "single", Folder: filepath.Join(folder, "one")})[0]
	if want.Error != "" {
		t.Fatalf("seed %d, %s: %s", seed, c, want.Error)
	}
	got := outcome{Logged: map[string]float64{}}
	told := fmt.Sprintf("seed %d, %s", seed, c)
	for _, stop := range c.stops {
		in := others[rng.IntN(len(others))]
		o := equivalent{Seed: seed, Strategy: drawStrategy(rng, in), Parallel: drawParallel(rng, in), Folder: filepath.Join(folder, "several"), Stop: stop}
		told += fmt.Sprintf("; %s, %s, model_parallel %d, stop at %d", in, o.Strategy, o.Parallel, stop)
		got = got.followedBy(t, told, w.do(t, in, o))
	}
	t.Log(told)
	c.compare(t, told, got, want)
	c.compareCheckpoints(t, told, newestCheckpoint(t, filepath.Join(folder, "several")), newestCheckpoint(t, filepath.Join(folder, "one")))
}

// followedBy adds the outcome of the next start.
func (o outcome) followedBy(t *testing.T, told string, ranks []outcome) outcome {
	t.Helper()
	for rank, result := range ranks {
		if result.Error != "" || result.Step != ranks[0].Step || !reflect.DeepEqual(result.Metrics, ranks[0].Metrics) {
			t.Fatalf("%s: rank %d: step %d, metrics %v; rank 0: step %d, metrics %v: %s", told, rank, result.Step, result.Metrics, ranks[0].Step, ranks[0].Metrics, result.Error)
		}
	}
	next := ranks[0]
	logged := maps.Clone(o.Logged)
	maps.Copy(logged, next.Logged)
	next.Logged = logged
	return next
}

// compare compares the weights and all logged metrics.
func (c combination) compare(t *testing.T, told string, got, want outcome) {
	t.Helper()
	if got.Step != want.Step || len(got.Weights) != len(want.Weights) {
		t.Fatalf("%s: %d updates of %d weights, want %d of %d", told, got.Step, len(got.Weights), want.Step, len(want.Weights))
	}
	for name, value := range want.Metrics {
		c.near(t, told, name, got.Metrics[name], value)
	}
	for _, name := range slices.Sorted(maps.Keys(want.Logged)) {
		if _, ok := got.Logged[name]; !ok {
			t.Errorf("%s: %s was not logged", told, name)
			continue
		}
		c.near(t, told, name, got.Logged[name], want.Logged[name])
	}
	if len(got.Logged) != len(want.Logged) {
		t.Errorf("%s: %d values were logged, want %d", told, len(got.Logged), len(want.Logged))
	}
	length := distance(want.Weights, make([]float64, len(want.Weights)))
	if off := distance(got.Weights, want.Weights) / length; !(off <= c.limit()) {
		t.Errorf("%s: the weights differ by %g of their norm", told, off)
	}
}

// limit is the largest relative difference.
func (c combination) limit() float64 {
	switch c.config.Precision {
	case "64-true":
		return 1e-9
	case "bf16-true", "bf16-mixed":
		return 0.05
	case "16-mixed":
		return 0.01
	}
	return 1e-3
}

// near checks a value. Those with an accuracy in their names count whole examples, of which
// rounding may change one.
func (c combination) near(t *testing.T, told, name string, got, want float64) {
	t.Helper()
	limit := 10*c.limit()*math.Abs(want) + 10*c.limit()
	if strings.Contains(name, "accuracy") && c.config.Precision != "64-true" {
		limit = 2/float64(c.validation) + 0.1
	}
	if !(math.Abs(got-want) <= limit) {
		t.Errorf("%s: %s is %.12g, want %.12g", told, name, got, want)
	}
}

// compareCheckpoints checks that two checkpoints have the same tensors. Random states differ with
// the number of ranks, and sums of gradients are zero at an update.
func (c combination) compareCheckpoints(t *testing.T, told string, got, want *checkpoint.Snapshot) {
	t.Helper()
	names := func(s *checkpoint.Snapshot) (all []string) {
		for name := range s.Tensors {
			if !strings.HasPrefix(name, "/metrics/") && !strings.HasSuffix(name, "/"+model.RNGStateVariableName) && !strings.HasPrefix(name, "/"+train.AccumulatedGradientsScope+"/") {
				all = append(all, name)
			}
		}
		slices.Sort(all)
		return all
	}
	if !slices.Equal(names(got), names(want)) || !maps.Equal(got.Weights, want.Weights) {
		t.Fatalf("%s: the checkpoint has %v, want %v; the weights %v, want %v", told, names(got), names(want), got.Weights, want.Weights)
	}
	for _, name := range names(want) {
		value, its := want.Tensors[name], got.Tensors[name]
		if !its.Shape().Equal(value.Shape()) {
			t.Errorf("%s: %s has the shape %s, want %s", told, name, its.Shape(), value.Shape())
			continue
		}
		have, should := floatsOf(t, its), floatsOf(t, value)
		length := distance(should, make([]float64, len(should)))
		if off := distance(have, should); !(off <= 10*c.limit()*length+c.limit()) {
			t.Errorf("%s: %s differs by %g of %g", told, name, off, length)
		}
	}
}

// carryOut trains the combination. It implements work.
func (o equivalent) carryOut(t *testing.T) outcome {
	c := drawCombination(o.Seed)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	record := &ledger{logged: map[string]float64{}}
	log := logger.NewMulti(logger.MultiOptions{}, record)
	config := c.config
	config.Strategy, config.ModelParallel, config.Checkpoint.Dir = o.Strategy, o.Parallel, o.Folder
	options := append(c.options(), trainer.WithLogger(log))
	options = append(options, c.divides(rand.New(rand.NewPCG(o.Seed, 5)))...)
	if o.Stop > 0 {
		options = append(options, stopAt(o.Stop, cancel))
	}
	tr, _ := newTrainer(t, config, c.task(), options...)
	result := outcome{Logged: record.logged}
	err := tr.Fit(ctx, c.training(), c.validationSet())
	var stopped *trainer.StoppedError
	if errors.As(err, &stopped) {
		err = nil
	} else if err == nil {
		result.Metrics, err = c.tested(t, tr)
	}
	if err = errors.Join(err, tr.WaitForCheckpoints(), log.Close()); err != nil {
		result.Error = err.Error()
	}
	result.Step = tr.Step()
	if tr.World().IsMain() && err == nil {
		result.Weights = trainedFloats(t, tr, "/")
	}
	return result
}

// tested tests the averages of the weights, if there are any, or else the weights.
func (c combination) tested(t *testing.T, tr *trainer.Trainer) (metrics trainer.Metrics, err error) {
	if c.config.EMADecay > 0 {
		err = tr.LoadAverage()
	}
	if err == nil {
		metrics, err = tr.Test(t.Context(), ranktest.Blobs(c.test))
	}
	return metrics, err
}

// ledger records everything that a training run logs, except its speed.
type ledger struct{ logged map[string]float64 }

func (r *ledger) Params(map[string]any) error { return nil }

func (r *ledger) Scalars(step int64, values map[string]float64) error {
	for name, value := range values {
		if name != "train/examples_per_second" && name != "train/data_wait" {
			r.logged[fmt.Sprintf("%s at %d", name, step)] = value
		}
	}
	return nil
}

func (r *ledger) Image(int64, string, image.Image) error { return nil }

func (r *ledger) Histogram(step int64, name string, values []float64) error {
	sum := 0.0
	for _, value := range values {
		sum += math.Abs(value)
	}
	r.logged[fmt.Sprintf("sum of %s at %d", name, step)] = sum
	return nil
}

func (r *ledger) Artifact(string) error { return nil }
func (r *ledger) Close() error          { return nil }
