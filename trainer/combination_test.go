package trainer_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/data"
	"gonbatch/distributed/ranktest"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// combination is a random training run.
type combination struct {
	config       trainer.Config
	examples     int
	validation   int // Examples; 0 for none.
	test         int
	stops        []int64 // The update after which each start is stopped; 0 for the last, which isn't.
	augmented    bool
	optimizers   [2]string
	two          bool // Two networks, with an objective each.
	net          features
	freezes      bool
	scales       bool
	normalizes   bool // WithGradients divides each gradient by its norm.
	l1, l2, clip float64

	masks maskKind

	scalesDecay, decaysMatrices bool // Options that apply if an optimizer has weight decay.
}

// features are what a random network has.
type features struct {
	convolution, norm, shared, unused, fixed, empty, gain, named, alike bool
}

func drawCombination(seed uint64) combination {
	rng := rand.New(rand.NewPCG(seed, 3))
	pick := func(all ...int) int { return all[rng.IntN(len(all))] }
	often := func(of int) bool { return rng.IntN(of) == 0 }
	batch := pick(12, 24)
	c := combination{
		examples: 3*batch + rng.IntN(4*batch), test: 1 + rng.IntN(40), augmented: often(3), two: often(3),
		optimizers: [2]string{inTurn(optimizerNames, seed), inTurn(optimizerNames, seed/2+3)},
		net:        features{convolution: often(4), norm: often(2), shared: often(3), unused: often(3), fixed: often(3), empty: often(4), gain: often(2), named: often(4)},
		freezes:    often(4), scales: often(4), normalizes: often(6),
		l1: []float64{0, 0, 0, 0.001}[rng.IntN(4)], l2: []float64{0, 0, 0, 0.01}[rng.IntN(4)], clip: []float64{0, 0, 0, 0.003}[rng.IntN(4)],
	}
	c.config = trainer.Config{
		BatchSize: batch, MaxSteps: 4 + rng.IntN(12), MaxEpochs: 20, EvalBatchSize: 1 + rng.IntN(30), Seed: rng.Uint64N(1000),
		Precision: inTurn(precisions, seed), DropLast: new(often(2)), Shuffle: new(!often(4)),
		AccumulateGradBatches: pick(1, 1, 2, 3), GradientClipNorm: []float64{0, 0, 0.05, 1}[rng.IntN(4)], EMADecay: []float64{0, 0, 0.9}[rng.IntN(3)],
		LimitTrainBatches: pick(0, 0, 0, 2, 3), LimitValBatches: pick(0, 0, 0, 100), LogEvery: 1 + rng.IntN(5), LogHistogramsEvery: pick(0, 0, 0, 2, 3),
		Schedule: drawSchedule(rng, seed), Checkpoint: trainer.CheckpointConfig{EverySteps: pick(0, 3), Keep: pick(1, 2)},
	}
	if !often(3) {
		c.validation = 1 + rng.IntN(50)
		c.config.ValCheckInterval = pick(0, 0, 2, 3)
	}
	if c.validation > 0 && often(4) {
		c.config.Schedule = trainer.ScheduleConfig{Kind: "plateau", Mode: "max", Gamma: 0.5, Patience: pick(1, 2)}
	}
	if often(2) {
		c.stops = []int64{1 + rng.Int64N(int64(c.config.MaxSteps)-1)}
	}
	c.stops = append(c.stops, 0)
	c.net.alike = often(2)
	c.scalesDecay, c.decaysMatrices = often(2), often(2)
	c.config.GradientClipValue = []float64{0, 0, 0.01}[rng.IntN(3)]
	if c.masks = inTurn(masks, seed); c.masks != noMask { // Some examples must count.
		c.test += 12
		c.validation += min(c.validation, 1) * 12
	}
	return c
}

// decays reports whether a network's optimizer has weight decay.
func (c combination) decays(i int) bool {
	return (i == 0 || c.two) && (c.optimizers[i] == "adamw" || c.optimizers[i] == "momentum")
}

// The optimizers, schedules and precisions come in turn, so a few seeds have all of them. Their
// numbers have no common divisor, so many seeds have all pairs.
var (
	optimizerNames = []string{"adam", "adamw", "adamax", "rmsprop", "momentum", "nesterov", "sgd", "decaying sgd"}
	schedules      = []trainer.ScheduleConfig{
		{}, {Kind: "step", StepSize: 2, Gamma: 0.5}, {Kind: "cosine"}, {Kind: "one-cycle"}, {Kind: "multistep", Milestones: []int{2, 5}, Gamma: 0.3},
	}
	precisions = []string{"64-true", "32-true", "64-true", "bf16-mixed", "64-true", "16-mixed", "bf16-true"}
)

var masks = []maskKind{noMask, boolMask, noMask, ownMask, noMask, ownWeights, smoothed, noMask, ownMask}

// inTurn returns the seed's one of all.
func inTurn[T any](all []T, seed uint64) T { return all[seed%uint64(len(all))] }

func drawSchedule(rng *rand.Rand, seed uint64) trainer.ScheduleConfig {
	s := inTurn(schedules, seed)
	s.WarmupSteps = rng.IntN(3)
	return s
}

// String describes the combination for messages.
func (c combination) String() string {
	return fmt.Sprintf("%d examples in batches of %d, %d for an update, %d updates, %s, masks %d, %v, two %v, %+v, schedule %s, decay scaled %v, only matrices %v", c.examples, c.config.BatchSize,
		c.config.AccumulateGradBatches, c.config.MaxSteps, c.config.Precision, c.masks, c.optimizers, c.two, c.net, c.config.Schedule.Kind, c.scalesDecay, c.decaysMatrices)
}

func (c combination) optimizer(i int) optimizer.Interface {
	adam := func() *optimizer.AdamConfig { return optimizer.Adam().Scope(fmt.Sprint("Adam", i)).LearningRate(0.01) }
	switch c.optimizers[i] {
	case "adam":
		return adam().Done()
	case "adamw":
		return adam().WeightDecay(0.1).Done()
	case "adamax":
		return adam().Adamax().Done()
	case "rmsprop":
		return optimizer.RMSProp().Scope(fmt.Sprint("Adam", i)).LearningRate(0.01).Done()
	case "momentum":
		return trainer.SGD{LearningRate: 0.05, Momentum: 0.9, WeightDecay: 0.01, Dampening: 0.2}
	case "nesterov":
		return trainer.SGD{LearningRate: 0.05, Momentum: 0.9, Nesterov: true}
	case "decaying sgd":
		return optimizer.StochasticGradientDescent().WithLearningRate(0.1).Done()
	}
	return trainer.SGD{LearningRate: 0.1}
}

// task trains one network, or two: the second one's loss depends on the first one's result.
func (c combination) task() trainer.Task {
	if !c.two {
		one := func(scope *model.Scope, x *graph.Node) *graph.Node { return c.net.build(scope.In("a"), x) }
		task := trainer.Supervised(one, c.loss, c.optimizer(0), metric.NewMeanMetric("Mean Accuracy", "#acc", "", c.masks.accuracy, nil))
		if c.masks == smoothed {
			plain := c
			plain.masks = boolMask
			task = trainer.WithEvalLoss(task, plain.loss)
		}
		return task
	}
	step := func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node {
		first := c.net.build(scope.In("a"), inputs[0])
		second := graph.Add(features{norm: c.net.norm}.build(scope.In("b"), inputs[0]), graph.MulScalar(first, 0.1))
		var losses []*graph.Node
		for _, logits := range []*graph.Node{first, second} {
			losses = append(losses, graph.ReduceAllMean(c.loss(labels, []*graph.Node{logits})))
		}
		return losses
	}
	return trainer.Adversarial(step, trainer.Objective{Name: "a", Scope: "/a", Optimizer: c.optimizer(0)}, trainer.Objective{Name: "b", Scope: "/b", Optimizer: c.optimizer(1)})
}

// loss is the cross-entropy. In 16-mixed it is small, and has single precision: nothing may
// overflow on one device that doesn't on a rank, whose part of the gradient is smaller.
func (c combination) loss(labels, logits []*graph.Node) *graph.Node {
	if c.config.Precision != "16-mixed" {
		return c.masks.mean(labels, logits)
	}
	wide := []*graph.Node{graph.ConvertDType(logits[0], dtypes.Float32)}
	return graph.MulScalar(c.masks.mean(labels, wide), 0.05)
}

// options are the options of the trainer.
func (c combination) options() (all []trainer.Option) {
	store := model.NewStore()
	for name, value := range map[string]float64{regularizer.ParamL1: c.l1, regularizer.ParamL2: c.l2, optimizer.ParamClipStepByValue: c.clip} {
		if value > 0 {
			store.SetParam("/"+name, value)
		}
	}
	all = append(all, trainer.WithStore(store))
	if c.freezes {
		all = append(all, trainer.Freeze("/a/hidden"))
	}
	if c.scales {
		all = append(all, trainer.ScaleRate("/a/logits", 0.1))
	}
	if c.scalesDecay && c.decays(0) {
		all = append(all, trainer.ScaleDecay("/a/logits", 0.3))
	}
	if c.decaysMatrices && (c.decays(0) || c.decays(1)) {
		all = append(all, trainer.NoDecayOfBiasesAndNorms())
	}
	if c.normalizes {
		all = append(all, trainer.WithGradients(byNorm))
	}
	if !c.two {
		all = append(all, trainer.WithTrainMetric("accuracy", c.masks.accuracy))
	}
	return all
}

func (c combination) training() data.Dataset {
	if c.augmented {
		return data.Augment(c.blobs(c.examples), 3, data.RandomCrop(2), data.RandomFlip(0.5))
	}
	return c.blobs(c.examples)
}

// validationSet returns nil if there is no validation.
func (c combination) validationSet() data.Dataset {
	if c.validation == 0 {
		return nil
	}
	return c.blobs(c.validation)
}

// build builds the network. Few of its variables have sizes that the numbers of ranks divide.
func (f features) build(scope *model.Scope, x *graph.Node) *graph.Node {
	zero := scope.WithInitializer(initializer.Zero)
	if f.convolution {
		x = graph.Tanh(layers.Convolution(scope.In("filter"), x).Channels(3).KernelSize(3).PadSame().Done())
	}
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(layers.Dense(scope.In("hidden"), x, true, 7))
	if f.unused {
		unused := zero.In("unused")
		unused.VariableWithShape("w", shapes.Make(x.DType(), 3))
		unused.VariableWithShape("w_1st_moment", shapes.Make(x.DType(), 3)).SetTrainable(false)
	}
	if f.shared {
		x = graph.Tanh(layers.Dense(scope.In("shared"), x, true, 7))
		x = graph.Tanh(layers.Dense(scope.Shared("shared"), x, true, 7))
	}
	if f.norm {
		x = cnn.BatchNorm(scope.In("norm"), x).Momentum(0.8).Done()
	}
	if f.empty {
		x = graph.Add(x, graph.ReduceAllSum(zero.In("empty").VariableWithShape("w", shapes.Make(x.DType(), 0, 3)).SetTrainable(false).NodeValue(x)))
	}
	if f.gain {
		x = graph.Mul(x, scope.In("gain").WithInitializer(initializer.One).VariableWithShape("factor", shapes.Make(x.DType())).NodeValue(x))
	}
	if f.named {
		one := zero.In("one").VariableWithShape("w_momentum", shapes.Make(x.DType(), 1))
		x = graph.Add(x, graph.InsertAxes(one.NodeValue(x), 0))
	}
	if f.fixed {
		fixed := scope.In("deep").In("one").WithInitializer(initializer.One).VariableWithShape("w_momentum_momentum", shapes.Make(x.DType(), 1)).SetTrainable(false)
		x = graph.Mul(x, graph.InsertAxes(fixed.NodeValue(x), 0))
	}
	logits := layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
	if f.alike {
		logits = graph.Add(logits, graph.MulScalar(graph.Dot(x, namedLikeState(scope, x)).Product(), 0.1))
	}
	return logits
}

// namedLikeState creates variables that are not trained, with names and shapes that the optimizers'
// state of the last layer might have. It returns the value of the one that the model uses.
func namedLikeState(scope *model.Scope, x *graph.Node) *graph.Node {
	own := scope.Store().Scope("/spare" + scope.Scope() + "/logits/dense").WithInitializer(initializer.One)
	shape := shapes.Make(x.DType(), x.Shape().Dimensions[1], ranktest.Classes)
	own.VariableWithShape("weights_1st_moment", shape).SetTrainable(false)
	own.VariableWithShape("biases_momentum", shapes.Make(x.DType(), ranktest.Classes)).SetTrainable(false)
	return own.VariableWithShape("weights_momentum", shape).SetTrainable(false).NodeValue(x)
}

// floatsOf returns the elements of a tensor of any type of numbers.
func floatsOf(t *testing.T, value *tensors.Tensor) (all []float64) {
	t.Helper()
	if value.Shape().IsZeroSize() {
		return nil
	}
	add := func(flat any) {
		switch flat := flat.(type) {
		case []int64:
			all = numbers(flat)
		case []int32:
			all = numbers(flat)
		default:
			all = wideFloats(flat)
		}
	}
	if err := value.ConstFlatData(add); err != nil {
		t.Fatal(err)
	}
	if len(all) != value.Size() {
		t.Fatalf("the elements of %s can't be compared", value.Shape())
	}
	return all
}

func numbers[T float32 | int64 | int32](flat []T) []float64 {
	all := make([]float64, len(flat))
	for i, x := range flat {
		all[i] = float64(x)
	}
	return all
}
