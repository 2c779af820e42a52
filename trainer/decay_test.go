package trainer_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

// decayVariables are those of decayNet, in the order of their names, with the axes that they have.
var decayVariables = []struct {
	path   string
	axes   []int
	vector bool // Not decayed by NoDecayOfBiasesAndNorms.
}{
	{"/a/biases", []int{3}, true}, {"/a/heads/biases", []int{2, 3}, true}, {"/a/heads/weights", []int{3, 4}, false}, {"/a/weights", []int{5, 3}, false},
	{"/b/norm/gain", []int{3, 2}, true}, {"/b/norm/offset", []int{7}, true}, {"/b/position", []int{2, 2}, false}, {"/c/factor", nil, true},
}

func sizeOf(axes []int) (size int) {
	size = 1
	for _, n := range axes {
		size *= n
	}
	return size
}

// decayTask returns a task whose variables, from 1, are pulled at by the mean of the first pixels:
// the gradient is value - mean.
func decayTask(o optimizer.Interface) trainer.Task {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		flat := graph.Reshape(x, x.Shape().Dimensions[0], -1)
		var differences []*graph.Node
		for _, v := range decayVariables {
			in := scope.Store().Scope(path.Dir(v.path)).WithInitializer(initializer.One)
			value := in.VariableWithShape(path.Base(v.path), shapes.Make(x.DType(), v.axes...)).NodeValue(x)
			pixels := graph.Slice(flat, graph.AxisRange(), graph.AxisRange(0, sizeOf(v.axes)))
			differences = append(differences, graph.Sub(graph.Reshape(value, 1, -1), pixels))
		}
		return graph.Concatenate(differences, 1)
	}
	half := func(_, differences []*graph.Node) *graph.Node {
		return graph.DivScalar(graph.ReduceSum(graph.Square(differences[0]), -1), 2)
	}
	return trainer.Supervised(net, half, o)
}

// decayCase is a random training run with weight decay.
type decayCase struct {
	config          trainer.Config
	sgd             trainer.SGD // Without a rate: Adam.
	rate, decay     float64     // Of Adam.
	adamax, rmsprop bool
	clipStep        float64
	frozen          bool               // "/b/norm".
	rates, decays   map[string]float64 // Factors, by scope.
	noVectors       bool
}

func drawDecay(rng *rand.Rand) decayCase {
	often := func(of int) bool { return rng.IntN(of) == 0 }
	factors := func(all ...float64) map[string]float64 {
		drawn := map[string]float64{}
		for _, scope := range []string{"/", "/a", "/a/heads", "/b", "/b/norm", "/c"} {
			if often(3) {
				drawn[scope] = all[rng.IntN(len(all))]
			}
		}
		return drawn
	}
	c := decayCase{
		frozen: often(4), rates: factors(0.1, 2), decays: factors(0, 0, 0.3, 0.5, 1), noVectors: often(2), rate: 0.1, decay: 0.5,
		adamax: often(4), rmsprop: often(4), clipStep: []float64{0, 0, 0.04}[rng.IntN(3)],
	}
	if often(2) {
		c.sgd = trainer.SGD{LearningRate: 0.1, WeightDecay: 0.5, Momentum: []float64{0, 0.9}[rng.IntN(2)]}
		c.sgd.Nesterov = c.sgd.Momentum > 0 && often(2)
		if c.sgd.Momentum > 0 && !c.sgd.Nesterov {
			c.sgd.Dampening = []float64{0, 0.2}[rng.IntN(2)]
		}
	}
	if c.frozen { // Nothing there is trained.
		delete(c.rates, "/b/norm")
		delete(c.decays, "/b/norm")
	}
	c.config = trainer.Config{
		BatchSize: 12, MaxSteps: 6, Precision: []string{"64-true", "64-true", "32-true"}[rng.IntN(3)], AccumulateGradBatches: 1 + rng.IntN(2),
		GradientClipNorm: []float64{0, 0.5}[rng.IntN(2)], Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true},
	}
	c.config.OverfitBatches = c.config.AccumulateGradBatches
	if often(2) {
		c.config.Schedule = trainer.ScheduleConfig{Kind: "step", StepSize: 2, Gamma: 0.5}
	}
	if often(2) {
		c.config.Strategy = "zero1"
	}
	return c
}

func (c decayCase) optimizer() optimizer.Interface {
	if c.sgd.LearningRate > 0 {
		return c.sgd
	}
	config := optimizer.Adam()
	if c.rmsprop {
		config = optimizer.RMSProp()
	}
	if c.adamax {
		config = config.Adamax()
	}
	return config.LearningRate(c.rate).WeightDecay(c.decay).Done()
}

func (c decayCase) options() (all []trainer.Option) {
	store := model.NewStore()
	if c.clipStep > 0 {
		store.SetParam("/"+optimizer.ParamClipStepByValue, c.clipStep)
	}
	all = append(all, trainer.WithStore(store))
	if c.frozen {
		all = append(all, trainer.Freeze("/b/norm"))
	}
	for scope, factor := range c.rates {
		all = append(all, trainer.ScaleRate(scope, factor))
	}
	for scope, factor := range c.decays {
		all = append(all, trainer.ScaleDecay(scope, factor))
	}
	if c.noVectors {
		all = append(all, trainer.NoDecayOfBiasesAndNorms())
	}
	return all
}

// of returns the factor of the longest scope in which a variable is.
func of(factors map[string]float64, variable string) float64 {
	for scope := path.Dir(variable); ; scope = path.Dir(scope) {
		if factor, ok := factors[scope]; ok {
			return factor
		}
		if scope == "/" {
			return 1
		}
	}
}

// scalarState is what an optimizer knows of one element.
type scalarState struct{ value, first, second float64 }

// step changes one element, as the papers of the optimizers and PyTorch's documentation say.
func (c decayCase) step(s *scalarState, gradient, rate, rateFactor, decayFactor float64, update int) {
	var change float64
	if o := c.sgd; o.LearningRate > 0 {
		direction := gradient + o.WeightDecay*decayFactor*s.value
		if o.Momentum > 0 {
			if update > 0 {
				s.first = o.Momentum*s.first + (1-o.Dampening)*direction
			} else {
				s.first = direction
			}
			if o.Nesterov {
				direction += o.Momentum * s.first
			} else {
				direction = s.first
			}
		}
		change = rate * direction
	} else {
		n, direction := float64(update+1), gradient
		if !c.rmsprop {
			s.first = 0.9*s.first + 0.1*gradient
			direction = s.first / (1 - math.Pow(0.9, n))
		}
		var length float64
		if c.adamax {
			s.second = max(0.999*s.second, math.Abs(gradient))
			length = s.second
		} else {
			s.second = 0.999*s.second + 0.001*gradient*gradient
			length = math.Sqrt(s.second / (1 - math.Pow(0.999, n)))
		}
		change = rate*direction/(length+1e-7) + rate*c.decay*decayFactor*s.value
	}
	if c.clipStep > 0 {
		change = max(-c.clipStep, min(c.clipStep, change))
	}
	s.value -= rateFactor * change
}

// want returns the variables after the updates, one after the other.
func (c decayCase) want(means []float64) (all []float64) {
	states := make([][]scalarState, len(decayVariables))
	for i, v := range decayVariables {
		states[i] = slices.Repeat([]scalarState{{value: 1}}, sizeOf(v.axes))
	}
	frozen := func(path string) bool { return c.frozen && strings.HasPrefix(path, "/b/norm/") }
	for update := range c.config.MaxSteps {
		norm, rate := 0.0, max(c.sgd.LearningRate, c.rate)
		if c.config.Schedule.Kind != "" {
			rate *= math.Pow(0.5, float64(update/2))
		}
		for i, v := range decayVariables {
			for k, s := range states[i] {
				if !frozen(v.path) {
					norm += (s.value - means[k]) * (s.value - means[k])
				}
			}
		}
		scale := 1.0
		if clip := c.config.GradientClipNorm; clip > 0 && math.Sqrt(norm) > clip {
			scale = clip / math.Sqrt(norm)
		}
		for i, v := range decayVariables {
			decay := of(c.decays, v.path)
			if c.noVectors && v.vector {
				decay = 0
			}
			for k := range states[i] {
				if !frozen(v.path) {
					c.step(&states[i][k], scale*(states[i][k].value-means[k]), rate, of(c.rates, v.path), decay, update)
				}
			}
		}
	}
	for i := range states {
		for _, s := range states[i] {
			all = append(all, s.value)
		}
	}
	return all
}

// TestScaleDecay: random training runs whose variables have factors of their decay leave the
// weights of the optimizers' formulas, on any devices and ranks, also if these share the update.
func TestScaleDecay(t *testing.T) { everywhere(t, testScaleDecay) }

func testScaleDecay(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	cases, changed := seeds(t, 12), 0
	for i := range cases {
		c := drawDecay(rng)
		if world(t).Devices() > 1 {
			c.config.Strategy = ""
		}
		tr, _ := newTrainer(t, c.config, decayTask(c.optimizer()), c.options()...)
		if err := tr.Fit(t.Context(), ranktest.Blobs(48), nil); err != nil {
			t.Fatalf("case %d, %+v: %v", i, c, err)
		}
		means := meanOf(t, ranktest.Blobs(12*c.config.OverfitBatches), 0)
		want := c.want(means)
		limit := map[string]float64{"64-true": 1e-6, "32-true": 1e-4}[c.config.Precision] // The pixels are float32.
		if d := distance(want, trainedFloats(t, tr, "/")); !(d < limit) {
			t.Errorf("case %d, %+v: the weights are %g from those of the formulas", i, c, d)
		}
		c.decays, c.noVectors = nil, false
		if distance(want, c.want(means)) > 0.01 {
			changed++
		}
	}
	if changed < cases/2 {
		t.Errorf("only in %d of %d cases the options change something", changed, cases)
	}
}

func adamW(decay float64) optimizer.Interface {
	return optimizer.Adam().LearningRate(0.01).WeightDecay(decay).Done()
}

// TestScaleDecayResumes: a killed training run ends with the weights of one that was not.
func TestScaleDecayResumes(t *testing.T) {
	options := func(more ...trainer.Option) []trainer.Option {
		return append(more, trainer.ScaleDecay("/logits", 0.2), trainer.NoDecayOfBiasesAndNorms())
	}
	for name, o := range map[string]optimizer.Interface{"AdamW": adamW(0.5), "SGD": trainer.SGD{LearningRate: 0.05, Momentum: 0.9, WeightDecay: 0.1}} {
		c := trainer.Config{BatchSize: 12, Seed: 1, MaxEpochs: 3, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: t.TempDir(), EverySteps: 5}}
		tr, _ := newTrainer(t, c, netTask(o), options(killAt(17))...)
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
		resumed, _ := newTrainer(t, c, netTask(o), options()...)
		mustFit(t, resumed)
		c.Checkpoint = trainer.CheckpointConfig{Off: true}
		whole, _ := newTrainer(t, c, netTask(o), options()...)
		mustFit(t, whole)
		t.Log(name)
		compareWeights(t, weights(t, resumed.Store()), weights(t, whole.Store()))
	}
}

// TestScaleDecayRefuses: factors without an effect are errors.
func TestScaleDecayRefuses(t *testing.T) {
	two := func(a, b optimizer.Interface) trainer.Task {
		step := func(scope *model.Scope, inputs, labels []*graph.Node) (losses []*graph.Node) {
			for _, name := range []string{"a", "b"} {
				logits := plainNet(scope.In("%s", name), inputs[0])
				losses = append(losses, graph.ReduceAllMean(loss.SparseCategoricalCrossEntropyLogits(labels, []*graph.Node{logits})))
			}
			return losses
		}
		return trainer.Adversarial(step, trainer.Objective{Name: "a", Scope: "/a", Optimizer: a}, trainer.Objective{Name: "b", Scope: "/b", Optimizer: b})
	}
	sgd, decaying := trainer.SGD{LearningRate: 0.1}, trainer.SGD{LearningRate: 0.1, WeightDecay: 0.1}
	for _, test := range []struct {
		task   trainer.Task
		option trainer.Option
		want   string
	}{
		{netTask(decaying), trainer.ScaleDecay("hidden", 0), `ScaleDecay: the scope "hidden": it must be a path such as "/body"`},
		{netTask(decaying), trainer.ScaleDecay("/hidden", -0.5), `ScaleDecay "/hidden": the factor must be from 0 to 1, got -0.5: to decay a part more`},
		{netTask(decaying), trainer.ScaleDecay("/hidden", 2), `ScaleDecay "/hidden": the factor must be from 0 to 1, got 2`},
		{netTask(decaying), trainer.ScaleDecay("/hidden", math.NaN()), `the factor must be from 0 to 1, got NaN`},
		{netTask(decaying), trainer.ScaleDecay("/hiden", 0), `ScaleDecay: the model has no variable that is trained under "/hiden", only under ["/hidden" "/logits"]`},
		{netTask(decaying), trainer.ScaleDecay("/hidden/dens/x", 0), `under "/hidden/dens/x", only under ["/hidden/dense"]`},
		{netTask(decaying), trainer.ScaleDecay("/hidden/dense/weights", 0), `under "/hidden/dense/weights", only under ["/hidden/dense/biases" "/hidden/dense/weights"]`},
		{netTask(decaying), trainer.ScaleRate("/hiden", 0.1), `ScaleRate: the model has no variable that is trained under "/hiden", only under ["/hidden" "/logits"]`},
		{netTask(sgd), trainer.ScaleDecay("/hidden", 0), `ScaleDecay "/hidden": no optimizer has weight decay: set the WeightDecay of trainer.SGD or of Adam, or remove the option`},
		{netTask(adam(0.1)), trainer.NoDecayOfBiasesAndNorms(), `NoDecayOfBiasesAndNorms: no optimizer has weight decay`},
		{netTask(momentumless{decaying}), trainer.ScaleDecay("/hidden", 0), `ScaleDecay "/hidden": the weight decay of the optimizer trainer_test.momentumless is not known: use trainer.SGD or GoMLX's Adam`},
		{two(sgd, adamW(0.1)), trainer.ScaleDecay("/a/hidden", 0), `ScaleDecay "/a/hidden": the optimizer of the variables there has no weight decay`},
		{two(sgd, adamW(0.1)), trainer.ScaleDecay("/b/hidden", 0), ""},
		{two(sgd, adamW(0.1)), trainer.ScaleDecay("/", 0), ""},
		{two(sgd, adamW(0.1)), trainer.NoDecayOfBiasesAndNorms(), ""},
	} {
		trainer.NewProcess()
		c := trainer.Config{BatchSize: 12, MaxSteps: 1, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
		tr, err := trainer.New(world(t), c, test.task, test.option, trainer.WithOutput(io.Discard))
		if err == nil {
			err = tr.Fit(t.Context(), ranktest.Blobs(24), nil)
		}
		if test.want == "" && err != nil || test.want != "" && !strings.Contains(fmt.Sprint(err), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}
