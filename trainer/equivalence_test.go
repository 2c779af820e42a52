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
// also if it is stopped in the middle and another world resumes it. In each precision, it notices
// if a rank gets dark images.
func TestRandomEquivalence(t *testing.T) {
	if os.Getenv(ordersFolder) != "" {
		obey[equivalent](t)
		return
	}
	n := seeds(t, defaultSeeds)
	for first := 0; first < n; first += chunk {
		t.Run(fmt.Sprint("seeds from ", first), func(t *testing.T) {
			w := newWorlds[equivalent](t)
			for seed := first; seed < min(n, first+chunk); seed++ {
				compareStrategies(t, w, uint64(seed))
			}
		})
	}
}

// defaultSeeds are as many as there are kinds of worlds.
const defaultSeeds = 13

// TestEquivalenceOfAllKinds: the seeds that TestRandomEquivalence tries by default have every kind
// of world, strategy, optimizer, schedule and precision.
func TestEquivalenceOfAllKinds(t *testing.T) {
	got := map[string]int{}
	for seed := range uint64(defaultSeeds) {
		c := drawCombination(seed)
		got["optimizer "+c.optimizers[0]]++
		got["schedule "+c.config.Schedule.Kind]++
		got["precision "+c.config.Precision]++
		got[fmt.Sprint("masks ", c.masks)]++
		for i := range c.stops {
			in := siteOf(seed, i)
			got[in.String()]++
			got["strategy "+in.strategy(seed)]++
		}
	}
	var want []string
	for _, in := range others {
		want = append(want, in.String())
	}
	for _, name := range optimizerNames {
		want = append(want, "optimizer "+name)
	}
	for _, s := range schedules {
		want = append(want, "schedule "+s.Kind)
	}
	for _, precision := range precisions {
		want = append(want, "precision "+precision)
	}
	for _, masks := range masks {
		want = append(want, fmt.Sprint("masks ", masks))
	}
	for _, what := range append(want, "schedule plateau", "strategy ddp", "strategy zero1", "strategy spmd") {
		if got[what] == 0 {
			t.Errorf("no seed has %s", what)
		}
	}
}

// equivalent is an order to train the combination of a seed.
type equivalent struct {
	Seed     uint64
	Strategy string
	Parallel int    // Devices that have parts of the weights.
	Folder   string // Of checkpoints.
	Stop     int64  // The update after which a person stops it; 0 for none.
	Dark     bool   // Rank 1 gets dark images.
}

// site is where a combination is trained: a world, and how many of its devices have parts of the
// weights.
type site struct {
	worldKind
	parallel int
}

func (s site) String() string { return fmt.Sprintf("%s, model_parallel %d", s.worldKind, s.parallel) }

// others are the sites whose results must be those of one device.
var others = []site{
	{worldKind{ranktest.OpenMPI, 2, 1}, 1}, {worldKind{ranktest.Torchrun, 1, 2}, 2}, {worldKind{ranktest.MPICH, 3, 1}, 1}, {overTCP(4), 1},
	{worldKind{ranktest.Torchrun, 1, 4}, 1}, {worldKind{ranktest.OpenMPI, 4, 1}, 1}, {overTCP(2), 1}, {worldKind{ranktest.Torchrun, 1, 4}, 2},
	{worldKind{ranktest.MPICH, 2, 1}, 1}, {overTCP(3), 1}, {worldKind{ranktest.Torchrun, 1, 4}, 4}, {overTCP(1), 1}, {worldKind{ranktest.MPICH, 4, 1}, 1},
}

// siteOf returns where the i-th start of a seed's combination is.
func siteOf(seed uint64, i int) site { return inTurn(others, seed+5*uint64(i)) }

// strategy returns the seed's strategy for a site.
func (s site) strategy(seed uint64) string {
	switch {
	case s.devices > 1:
		return "spmd"
	case s.ranks == 1:
		return "zero1"
	}
	return inTurn([]string{"zero1", "ddp", "zero1"}, seed)
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
	folder := t.TempDir()
	c := drawCombination(seed)
	want := w.do(t, overTCP(1), equivalent{Seed: seed, Strategy: "single", Folder: filepath.Join(folder, "one")})[0]
	if want.Error != "" {
		t.Fatalf("seed %d, %s: %s", seed, c, want.Error)
	}
	got := outcome{Logged: map[string]float64{}}
	told := fmt.Sprintf("seed %d, %s", seed, c)
	for i, stop := range c.stops {
		in := siteOf(seed, i)
		o := equivalent{Seed: seed, Strategy: in.strategy(seed), Parallel: in.parallel, Folder: filepath.Join(folder, "several"), Stop: stop}
		told += fmt.Sprintf("; %s, %s, stop at %d", in, o.Strategy, stop)
		got = got.followedBy(t, told, w.do(t, in.worldKind, o))
	}
	t.Log(told)
	differences := c.compare(got, want)
	differences = append(differences, c.compareCheckpoints(t, newestCheckpoint(t, filepath.Join(folder, "several")), newestCheckpoint(t, filepath.Join(folder, "one")))...)
	if len(differences) > 0 {
		t.Errorf("%s:\n%s", told, strings.Join(differences, "\n"))
	}
	if seed >= uint64(len(precisions)) {
		return
	}
	wrong := w.do(t, overTCP(2), equivalent{Seed: seed, Strategy: "ddp", Parallel: 1, Folder: filepath.Join(folder, "wrong"), Dark: true})[0]
	if all := strings.Join(c.compare(wrong, want), "\n"); !strings.Contains(all, "the weights differ") {
		t.Errorf("seed %d, %s, with dark images on a rank: the weights do not differ: %s\n%s", seed, c, wrong.Error, all)
	}
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

// compare returns how the weights and all logged metrics differ.
func (c combination) compare(got, want outcome) (differences []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	if got.Step != want.Step || len(got.Weights) != len(want.Weights) || len(got.Logged) != len(want.Logged) {
		differ("%d updates of %d weights with %d logged values, want %d, %d and %d", got.Step, len(got.Weights), len(got.Logged), want.Step, len(want.Weights), len(want.Logged))
		return differences
	}
	for _, values := range [][2]map[string]float64{{got.Metrics, want.Metrics}, {got.Logged, want.Logged}} {
		for _, name := range slices.Sorted(maps.Keys(values[1])) {
			value, ok := values[0][name]
			if should := values[1][name]; !ok || !c.near(name, value, should) {
				differ("%s is %.12g, want %.12g", name, value, should)
			}
		}
	}
	if off := distance(got.Weights, want.Weights) / distance(want.Weights, want.Begin); !(off <= c.limit()) {
		differ("the weights differ by %.2g of the way from those after the first update", off)
	}
	return differences
}

// limit is the largest difference of the weights, relative to the way that they have moved.
func (c combination) limit() float64 {
	return map[string]float64{"64-true": 1e-11, "32-true": 1e-4, "bf16-true": 0.15, "bf16-mixed": 0.03, "16-mixed": 0.01}[c.config.Precision]
}

// near checks a value. Those with an accuracy in their names count whole examples, of which
// rounding may change one.
func (c combination) near(name string, got, want float64) bool {
	limit := 2 * c.limit() * (math.Abs(want) + 1)
	if strings.Contains(name, "accuracy") && c.config.Precision != "64-true" {
		limit = 2/float64(c.validation) + 0.1
	}
	return math.Abs(got-want) <= limit
}

// compareCheckpoints returns how the tensors of two checkpoints differ. Random states differ with
// the number of ranks, and sums of gradients are zero at an update.
func (c combination) compareCheckpoints(t *testing.T, got, want *checkpoint.Snapshot) (differences []string) {
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
		return []string{fmt.Sprintf("the checkpoint has %v, want %v; the weights %v, want %v", names(got), names(want), got.Weights, want.Weights)}
	}
	for _, name := range names(want) {
		value, its := want.Tensors[name], got.Tensors[name]
		if !its.Shape().Equal(value.Shape()) {
			differences = append(differences, fmt.Sprintf("%s has the shape %s, want %s", name, its.Shape(), value.Shape()))
			continue
		}
		have, should := floatsOf(t, its), floatsOf(t, value)
		length, off := distance(should, make([]float64, len(should))), distance(have, should)
		if !(off <= 2*c.limit()*(length+0.05)) {
			differences = append(differences, fmt.Sprintf("%s differs by %g of %g", name, off, length))
		}
	}
	return differences
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
	result := outcome{Logged: record.logged}
	begin := trainer.Callback{Name: "begin", BatchEnd: func(e *trainer.Event) error {
		if e.Step == 1 && o.Strategy == "single" {
			result.Begin = trainedFloats(t, e.Trainer, "/")
		}
		return nil
	}}
	tr, _ := newTrainer(t, config, c.task(), append(options, trainer.WithCallbacks(begin))...)
	training := c.training()
	if o.Dark && tr.World().Rank() == 1 {
		training = dark{training}
	}
	err := tr.Fit(ctx, training, c.validationSet())
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
		metrics, err = tr.Test(t.Context(), c.blobs(c.test))
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
