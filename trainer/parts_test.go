package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/data"
	"gonbatch/distributed/memory"
	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// strategy is the variable that selects the strategy in the ranks of a test.
const strategy = "STRATEGY"

// oddNet has weights whose sizes no number of ranks divides, a scalar, and batch normalization.
func oddNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	x = graph.Tanh(layers.Dense(scope.In("body"), x, true, 7))
	x = cnn.BatchNorm(scope.In("norm"), x).Done()
	scale := scope.In("gain").WithInitializer(initializer.One).VariableWithShape("factor", shapes.Make(x.DType()))
	x = graph.Mul(x, scale.NodeValue(x))
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

func oddTask(o optimizer.Interface) trainer.Task {
	return trainer.Supervised(oddNet, loss.SparseCategoricalCrossEntropyLogits, o)
}

// oddestNet has weights without elements, of one element, shared, unused, not trained, and with the
// names of an optimizer's state.
func oddestNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	zero := scope.WithInitializer(initializer.Zero)
	zero.In("unused").VariableWithShape("w", shapes.Make(x.DType(), 3))
	empty := zero.In("empty").VariableWithShape("w", shapes.Make(x.DType(), 0, 3)).SetTrainable(false)
	one := zero.In("one").VariableWithShape("w_momentum", shapes.Make(x.DType(), 1))
	fixed := scope.In("deep").In("one").WithInitializer(initializer.One).VariableWithShape("w_momentum_momentum", shapes.Make(x.DType(), 1)).SetTrainable(false)
	x = layers.Dense(scope.In("body"), x, true, 5)
	x = graph.Tanh(layers.Dense(scope.In("shared"), x, true, 5))
	x = graph.Tanh(layers.Dense(scope.Shared("shared"), x, true, 5))
	x = graph.Mul(graph.Add(x, graph.InsertAxes(one.NodeValue(x), 0)), graph.InsertAxes(fixed.NodeValue(x), 0))
	x = graph.Add(x, graph.ReduceAllSum(empty.NodeValue(x)))
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// twoOddTasks trains two networks with two optimizers. In 16-mixed, a small scale of the losses
// prevents that something overflows on one device that doesn't on a rank, whose part of the
// gradient is smaller.
func twoOddTasks(scale float64) trainer.Task {
	step := func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node {
		one := func(name string) *graph.Node {
			logits := graph.ConvertDType(oddNet(scope.In("%s", name), inputs[0]), dtypes.Float32)
			return graph.MulScalar(graph.ReduceAllMean(loss.SparseCategoricalCrossEntropyLogits(labels, []*graph.Node{logits})), scale)
		}
		return []*graph.Node{one("a"), one("b")}
	}
	return trainer.Adversarial(step, trainer.Objective{Name: "a", Scope: "/a", Optimizer: optimizer.Adam().Scope("AdamA").LearningRate(0.01).Done()},
		trainer.Objective{Name: "b", Scope: "/b", Optimizer: trainer.SGD{LearningRate: 0.05, Momentum: 0.9}})
}

// dividedCase is a training run that must not depend on the strategy.
type dividedCase struct {
	name    string
	task    trainer.Task
	config  trainer.Config
	options []trainer.Option
	limit   float64 // Of the distance, relative to the way from the first update; 0 for 1e-3.
	zero1   bool    // Only zero1 tries it, which changes optimizers.
}

func dividedCases() []dividedCase {
	adam := func() trainer.Task { return oddTask(optimizer.Adam().LearningRate(0.01).Done()) }
	sgd := trainer.SGD{LearningRate: 0.05, Momentum: 0.9, WeightDecay: 0.01, Dampening: 0.2}
	return []dividedCase{
		{name: "adam", task: adam()},
		{name: "adamw", task: oddTask(optimizer.Adam().LearningRate(0.01).WeightDecay(0.1).Done())},
		{name: "adamax", zero1: true, task: oddTask(optimizer.Adam().LearningRate(0.01).Adamax().Done())},
		{name: "rmsprop", zero1: true, task: oddTask(optimizer.RMSProp().LearningRate(0.01).Done())},
		{name: "momentum", task: oddTask(sgd)},
		{name: "nesterov", zero1: true, task: oddTask(trainer.SGD{LearningRate: 0.05, Momentum: 0.9, Nesterov: true})},
		{name: "sgd", zero1: true, task: oddTask(optimizer.StochasticGradientDescent().WithLearningRate(0.1).Done())},
		{name: "clipping", task: adam(), config: trainer.Config{GradientClipNorm: 0.05}},
		{name: "clipping by value", zero1: true, task: adam(), config: trainer.Config{GradientClipValue: 0.01, GradientClipNorm: 0.05}},
		{name: "clipped sgd", zero1: true, task: oddTask(plainSGD(1)), config: trainer.Config{GradientClipNorm: 0.05}},
		{name: "accumulation", task: adam(), config: trainer.Config{AccumulateGradBatches: 3, GradientClipNorm: 1}},
		{name: "averages", zero1: true, task: adam(), config: trainer.Config{EMADecay: 0.9}},
		{name: "frozen", task: adam(), options: []trainer.Option{trainer.Freeze("/body")}},
		{name: "rates", zero1: true, task: adam(), options: []trainer.Option{trainer.ScaleRate("/body", 0.1)}},
		{name: "decays", zero1: true, task: oddTask(adamW(0.5)), options: []trainer.Option{trainer.ScaleDecay("/body", 0.1), trainer.NoDecayOfBiasesAndNorms()}},
		{name: "step decay", task: oddTask(sgd), config: trainer.Config{Schedule: trainer.ScheduleConfig{Kind: "step", StepSize: 3, Gamma: 0.5}}},
		{name: "cosine", task: adam(), config: trainer.Config{Schedule: trainer.ScheduleConfig{Kind: "cosine", WarmupSteps: 2}}},
		{name: "histograms", zero1: true, task: adam(), config: trainer.Config{LogHistogramsEvery: 2, GradientClipNorm: 0.05}},
		{name: "changed gradients", zero1: true, task: adam(), config: trainer.Config{GradientClipNorm: 0.05}, options: []trainer.Option{trainer.WithGradients(byNorm)}},
		{name: "two objectives", zero1: true, task: twoOddTasks(1), config: trainer.Config{GradientClipNorm: 0.5}},
		{name: "oddest net", task: trainer.Supervised(oddestNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().LearningRate(0.01).Done()), config: trainer.Config{GradientClipNorm: 1}},
		{name: "double precision", task: adam(), config: trainer.Config{Precision: "64-true"}, limit: 1e-12},
		{name: "half precision", zero1: true, task: adam(), config: trainer.Config{Precision: "bf16-true"}, limit: 0.05},
		{name: "bf16-mixed", task: adam(), config: trainer.Config{Precision: "bf16-mixed", AccumulateGradBatches: 2, EMADecay: 0.5}, limit: 0.05},
		{name: "16-mixed", task: adam(), config: trainer.Config{Precision: "16-mixed", GradientClipNorm: 0.05}, limit: 0.005},
		{name: "16-mixed, all options", task: twoOddTasks(0.05), config: trainer.Config{Precision: "16-mixed", AccumulateGradBatches: 2, GradientClipNorm: 0.5, LogHistogramsEvery: 2, EMADecay: 0.5}, options: []trainer.Option{trainer.WithGradients(byNorm)}, limit: 0.05},
	}
}

// byNorm divides each gradient by its own norm.
func byNorm(_ []*model.Variable, gradients []*graph.Node) []*graph.Node {
	for i, gradient := range gradients {
		gradients[i] = graph.Div(gradient, graph.AddScalar(graph.Sqrt(graph.ReduceAllSum(graph.Square(gradient))), 1e-6))
	}
	return gradients
}

// trained is the weights after the first update and after the last, or the averages of the latter.
type trained struct{ Begin, End []float64 }

// fit trains a case.
func (d dividedCase) fit(t *testing.T, strategy string) (w trained) {
	t.Helper()
	c := d.config
	c.Strategy, c.Seed, c.BatchSize, c.MaxSteps, c.MaxEpochs = strategy, 5, 24, 9, 5
	c.Loggers = []string{"none"}
	c.Checkpoint.Off = true
	begin := trainer.Callback{Name: "begin", BatchEnd: func(e *trainer.Event) error {
		if e.Step == 1 && strategy == "single" {
			w.Begin = trainedFloats(t, e.Trainer, "/")
		}
		return nil
	}}
	tr, _ := newTrainer(t, c, d.task, append(slices.Clone(d.options), trainer.WithCallbacks(begin))...)
	var examples data.Dataset = ranktest.Blobs(24 * 12)
	if os.Getenv(darkRank) == fmt.Sprint(tr.World().Rank()) {
		examples = dark{examples}
	}
	if err := tr.Fit(t.Context(), examples, nil); err != nil {
		t.Fatalf("%s: %v", d.name, err)
	}
	if c.EMADecay > 0 {
		if err := tr.LoadAverage(); err != nil {
			t.Fatalf("%s: %v", d.name, err)
		}
	}
	w.End = trainedFloats(t, tr, "/")
	return w
}

// darkRank is the variable with the number of a rank that gets dark images.
const darkRank = "DARK_RANK"

// dark replaces images by zeros.
type dark struct{ data.Dataset }

// Fingerprint hides the difference from the ranks.
func (d dark) Fingerprint() string { return data.Fingerprint(d.Dataset) }

func (d dark) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	inputs, labels, err = d.Dataset.Batch(indices)
	if err != nil {
		return nil, nil, err
	}
	return []*tensors.Tensor{tensors.FromShape(inputs[0].Shape())}, labels, nil
}

// TestStrategies: no strategy changes anything but rounding, with any optimizer, on any number of
// ranks and devices. If one of two ranks gets other images, each case notices.
func TestStrategies(t *testing.T) {
	if ranktest.InRank() {
		all := map[string]trained{}
		for _, d := range tier.Half(dividedCases()) {
			if s := os.Getenv(strategy); !d.zero1 || s == "zero1" || s == "single" {
				all[d.name] = d.fit(t, s)
			}
		}
		if world(t).IsMain() {
			writeGob(t, os.Getenv("OUTCOME"), all)
		}
		return
	}
	fit := func(t *testing.T, in worldKind, with, dark string) (all map[string]trained) {
		outcome := tempFile(t, "outcome")
		env := []string{fmt.Sprint("GONBATCH_DEVICES=", in.devices), "OUTCOME=" + outcome, strategy + "=" + with, darkRank + "=" + dark}
		if out, err := ranktest.Start(t, in.launcher, in.ranks, env); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		readGob(t, outcome, &all)
		return all
	}
	openMPI := func(ranks int) worldKind { return worldKind{ranktest.OpenMPI, ranks, 1} }
	devices := func(n int) worldKind { return worldKind{ranktest.Torchrun, 1, n} }
	want := fit(t, openMPI(1), "single", "")
	type strategyTest struct {
		strategy string
		in       worldKind
		dark     string
	}
	tests := []strategyTest{
		{"zero1", worldKind{ranktest.MPICH, 3, 1}, ""}, {"zero1", worldKind{ranktest.Torchrun.OnGPUs(t, 2), 2, 1}, ""},
		{"ddp", openMPI(2), ""}, {"spmd", devices(2), ""}, // With -short, these are all.
		{"ddp", overTCP(2), "1"}, {"zero1", openMPI(1), ""}, {"zero1", openMPI(2), ""}, {"zero1", openMPI(4), ""}, {"zero1", overTCP(4), ""}, {"zero1", overTCP(2), ""}, {"zero1", overTCP(3), ""},
		{"ddp", worldKind{ranktest.MPICH, 3, 1}, ""}, {"ddp", openMPI(4), ""}, {"ddp", overTCP(4), ""}, {"spmd", devices(4), ""},
	}
	for _, test := range tier.Fewer(tests, 4) {
		t.Run(fmt.Sprintf("%s, %s, dark rank %q", test.strategy, test.in, test.dark), func(t *testing.T) {
			got := fit(t, test.in, test.strategy, test.dark)
			for _, d := range tier.Half(dividedCases()) {
				if !d.zero1 || test.strategy == "zero1" {
					d.compare(t, got[d.name].End, want[d.name], test.dark != "")
				}
			}
		})
	}
}

// compare checks the distance of the weights to those of one rank, which must be far if a rank is
// dark.
func (d dividedCase) compare(t *testing.T, got []float64, want trained, dark bool) {
	t.Helper()
	off, limit := distance(got, want.End)/distance(want.End, want.Begin), d.limit
	if limit == 0 {
		limit = 1e-3
	}
	if len(got) != len(want.End) || dark && !(off > 2*limit) || !dark && !(off < limit) {
		t.Errorf("%s: %d weights are off by %.2g of the way from the first update, the limit is %g", d.name, len(got), off, limit)
	}
}

// stateBytes returns the bytes of the values of the optimizer's state on this rank.
func stateBytes(t *testing.T, store *model.Store) (bytes int64) {
	t.Helper()
	for v := range store.IterVariables() {
		if strings.HasPrefix(v.Path(), "/"+optimizer.AdamDefaultScope+"/") {
			bytes += v.MustValue().Shape().ByteSize()
		}
	}
	return bytes
}

// TestZero1Memory: each rank has its part of the optimizer's state, and no more.
func TestZero1Memory(t *testing.T) {
	if !ranktest.InRank() {
		for _, ranks := range []int{1, 2, 4} {
			out, err := ranktest.Start(t, ranktest.Torchrun, ranks, []string{"GONBATCH_DEVICES=1"})
			if err != nil {
				t.Errorf("%d ranks: %v\n%s", ranks, err, out)
			}
			for _, line := range strings.Split(out, "\n") {
				if strings.Contains(line, "bytes of state") {
					t.Log(strings.TrimSpace(line))
				}
			}
		}
		return
	}
	bytes := func(strategy string) int64 {
		tr, _ := newTrainer(t, trainer.Config{Strategy: strategy, MaxSteps: 2, BatchSize: 12, Loggers: []string{"none"}}, blobTask(plainNet))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(err)
		}
		return stateBytes(t, tr.Store())
	}
	whole, part, ranks := bytes("auto"), bytes("zero1"), int64(world(t).Size())
	fmt.Printf("rank %d of %d: %d bytes of state, %d with zero1\n", world(t).Rank(), ranks, whole, part)
	if most := whole/ranks + 8*8; whole < 1000 || part > most {
		t.Errorf("rank %d of %d has %d bytes of state, %d with zero1, want at most %d", world(t).Rank(), ranks, whole, part, most)
	}
}

// deepNet has 7 million weights.
func deepNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = graph.Reshape(x, x.Shape().Dimensions[0], -1)
	for i := range 4 {
		x = graph.Tanh(layers.Dense(scope.In("hidden%d", i), x, true, 1536))
	}
	return layers.Dense(scope.In("logits"), x, true, ranktest.Classes)
}

// TestZero1Peak: not only the state takes less memory, but the whole step.
func TestZero1Peak(t *testing.T) {
	tier.Long(t)
	if ranktest.InRank() {
		c := trainer.Config{Strategy: os.Getenv(strategy), MaxSteps: 8, BatchSize: 16, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Off: true}}
		peak, state := int64(math.MaxInt64), int64(0)
		look := trainer.Callback{Name: "look", BatchEnd: func(e *trainer.Event) error {
			took := memory.Peak()
			if e.Step > 1 { // Without compiling, and without steps that overlap on a busy machine.
				peak, state = min(peak, took), stateBytes(t, e.Trainer.Store())
			}
			return nil
		}}
		tr, _ := newTrainer(t, c, trainer.Supervised(deepNet, loss.SparseCategoricalCrossEntropyLogits, optimizer.Adam().Done()), trainer.WithCallbacks(look))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(err)
		}
		if world(t).IsMain() {
			writeGob(t, os.Getenv("OUTCOME"), []int64{peak, state})
		}
		return
	}
	measure := func(with string) (peak, state int64) {
		outcome := tempFile(t, "outcome")
		env := []string{"GONBATCH_DEVICES=1", "OUTCOME=" + outcome, strategy + "=" + with, "XLA_FLAGS=--xla_dump_to=" + t.TempDir()} // Not those for quick compilation.
		if out, err := ranktest.Start(t, ranktest.Torchrun, 2, env); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var got []int64
		readGob(t, outcome, &got)
		return got[0], got[1]
	}
	whole, wholeState := measure("ddp")
	part, partState := measure("zero1")
	t.Logf("2 ranks: the peak is %d MiB with ddp, %d MiB with zero1; the state %d and %d MiB", whole>>20, part>>20, wholeState>>20, partState>>20)
	if saved := wholeState - partState; wholeState < 50<<20 || partState > wholeState/2+1000 || part > whole-saved/2 {
		t.Errorf("the peak is %d bytes with ddp, %d with zero1; the state %d and %d", whole, part, wholeState, partState)
	}
}

// zero1StepBody is one start of TestZero1Resumes.
func zero1StepBody(t *testing.T) {
	kill, err := strconv.ParseInt(os.Getenv("KILL"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	c := trainer.Config{
		Strategy: os.Getenv(strategy), MaxSteps: 40, MaxEpochs: 10, BatchSize: 12, Seed: 3, Loggers: []string{"none"}, EMADecay: 0.9, AccumulateGradBatches: 2,
		Checkpoint: trainer.CheckpointConfig{EverySteps: 5, Dir: os.Getenv("CHECKPOINTS")},
	}
	var options []trainer.Option
	if kill > 0 {
		options = append(options, killAt(kill))
	}
	tr, out := newTrainer(t, c, oddTask(optimizer.Adam().LearningRate(0.01).Done()), options...)
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); kill > 0 && !errors.Is(err, errKilled) || kill == 0 && err != nil {
		t.Fatal(err)
	}
	if err := tr.WaitForCheckpoints(); err != nil {
		t.Fatal(err)
	}
	fmt.Print(out.String())
}

// TestZero1Resumes: a checkpoint has the whole state, so any other number of ranks and any other
// strategy resumes it. It ends with the same checkpoint.
func TestZero1Resumes(t *testing.T) {
	if ranktest.InRank() {
		zero1StepBody(t)
		return
	}
	start := func(t *testing.T, folder string, launcher ranktest.Launcher, ranks int, with string, from, kill int) {
		t.Helper()
		out, err := ranktest.Start(t, launcher, ranks, []string{"GONBATCH_DEVICES=1", "CHECKPOINTS=" + folder, strategy + "=" + with, fmt.Sprintf("KILL=%d", kill)})
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if said := fmt.Sprintf("resumes after step %d,", from); from > 0 && !strings.Contains(out, said) {
			t.Errorf("no %q:\n%s", said, out)
		}
	}
	alone, folder := t.TempDir(), t.TempDir()
	start(t, alone, ranktest.OpenMPI, 1, "single", 0, 0)
	start(t, folder, ranktest.OpenMPI, 3, "zero1", 0, 7) // The newest checkpoint is that of step 5.
	start(t, folder, ranktest.Torchrun, 2, "zero1", 5, 17)
	start(t, folder, ranktest.MPICH, 2, "ddp", 15, 21)
	start(t, folder, ranktest.OpenMPI, 4, "zero1", 20, 28)
	start(t, folder, ranktest.OpenMPI, 1, "zero1", 25, 33)
	start(t, folder, ranktest.Torchrun.OnGPUs(t, 2), 2, "zero1", 30, 0)
	compareCheckpoints(t, newestCheckpoint(t, folder), newestCheckpoint(t, alone))
}

func newestCheckpoint(t *testing.T, folder string) *checkpoint.Snapshot {
	t.Helper()
	all, err := checkpoint.List(folder)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d checkpoints, %v", len(all), err)
	}
	s, err := checkpoint.Read(all[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// compareCheckpoints checks that checkpoints have the same tensors, nearly.
func compareCheckpoints(t *testing.T, got, want *checkpoint.Snapshot) {
	t.Helper()
	moments := 0
	for _, name := range slices.Sorted(maps.Keys(want.Tensors)) {
		if strings.HasPrefix(name, "/metrics/") {
			continue
		}
		value, its := want.Tensors[name], got.Tensors[name]
		if its == nil || !its.Shape().Equal(value.Shape()) || got.Weights[name] != want.Weights[name] {
			t.Errorf("%s is %v, want %s", name, its, value.Shape())
			continue
		}
		if strings.Contains(name, "_moment") {
			moments++
		}
		if value.DType() != dtypes.Float32 {
			continue
		}
		a, b := tensors.MustCopyFlatData[float32](its), tensors.MustCopyFlatData[float32](value)
		for i := range b {
			if off := math.Abs(float64(a[i] - b[i])); !(off <= 1e-3*math.Abs(float64(b[i]))+1e-4) {
				t.Errorf("%s: element %d is %g, want %g", name, i, a[i], b[i])
				break
			}
		}
	}
	if got.Step != 40 || want.Step != 40 || moments < 10 {
		t.Errorf("steps %d and %d, %d moments", got.Step, want.Step, moments)
	}
}

// momentumless is an optimizer that the strategy does not know.
type momentumless struct{ trainer.SGD }

// TestZero1Refuses: what can't be divided is refused, with the option and the fix.
func TestZero1Refuses(t *testing.T) {
	if ranktest.InRank() {
		zero1Refusals(t)
		return
	}
	for _, ranks := range []struct {
		number int
		env    string
	}{{2, "GONBATCH_DEVICES=1"}, {1, "GONBATCH_DEVICES=2"}} {
		if out, err := ranktest.Start(t, ranktest.Torchrun, ranks.number, []string{ranks.env}); err != nil {
			t.Errorf("%d ranks, %s: %v\n%s", ranks.number, ranks.env, err, out)
		}
	}
}

func zero1Refusals(t *testing.T) {
	c := trainer.Config{Strategy: "zero1", MaxSteps: 2, BatchSize: 12, Loggers: []string{"none"}}
	fit := func(task trainer.Task, options ...trainer.Option) error {
		trainer.NewProcess()
		tr, err := trainer.New(world(t), c, task, options...)
		if err != nil {
			return err
		}
		return tr.Fit(t.Context(), ranktest.Blobs(145), nil)
	}
	refused := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if world(t).Devices() > 1 {
		refused(fit(blobTask(plainNet)), `strategy: "zero1", but this is`)
		return
	}
	refused(fit(oddTask(momentumless{trainer.SGD{LearningRate: 1}})), `strategy: "zero1" can't divide the state of the optimizer trainer_test.momentumless among the ranks: use Adam`)
	dropping := model.NewStore()
	dropping.SetParam("/"+optimizer.ParamClipNaN, true)
	refused(fit(blobTask(plainNet), trainer.WithStore(dropping)), `strategy: "zero1" and the hyper-parameter "clip_nan"`)
	used := model.NewStore()
	if err := fit(blobTask(plainNet), trainer.WithStore(used)); err != nil {
		t.Error(err)
	}
	refused(fit(blobTask(plainNet), trainer.WithStore(used)), `the store already has /AdamOptimizer/hidden/dense/`)
	whole := model.NewStore()
	c.Strategy = ""
	if err := fit(blobTask(plainNet), trainer.WithStore(whole)); err != nil {
		t.Error(err)
	}
	c.Strategy = "zero1"
	refused(fit(blobTask(plainNet), trainer.WithStore(whole)), `the store already has /AdamOptimizer/hidden/dense/`)
}

// cancelling ends a context when its examples are asked for.
type cancelling struct {
	ranktest.Blobs
	cancel func()
}

func (c cancelling) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	c.cancel()
	return c.Blobs.Batch(indices)
}

// TestZero1FitsAgain: if the first Fit of a resumed training run is stopped before its first
// update, the second one continues with each rank's own part of the state.
func TestZero1FitsAgain(t *testing.T) { sameAsDDP(t, fitAgain) }

// TestZero1ResumesAtEpochEnd: a training run that resumes with the work at the end of an epoch
// saves a checkpoint before its first update.
func TestZero1ResumesAtEpochEnd(t *testing.T) { sameAsDDP(t, resumeAtEpochEnd) }

// sameAsDDP checks that 3 ranks leave the same checkpoint with both strategies.
func sameAsDDP(t *testing.T, fit func(*testing.T, trainer.Config)) {
	if ranktest.InRank() {
		fit(t, trainer.Config{
			Strategy: os.Getenv(strategy), MaxSteps: 40, MaxEpochs: 40, BatchSize: 12, Seed: 3, Loggers: []string{"none"},
			Checkpoint: trainer.CheckpointConfig{Dir: os.Getenv("CHECKPOINTS")},
		})
		return
	}
	folder := t.TempDir()
	for _, with := range []string{"ddp", "zero1"} {
		if out, err := ranktest.Start(t, ranktest.Torchrun, 3, []string{"GONBATCH_DEVICES=1", strategy + "=" + with, "CHECKPOINTS=" + filepath.Join(folder, with)}); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	compareCheckpoints(t, newestCheckpoint(t, filepath.Join(folder, "zero1")), newestCheckpoint(t, filepath.Join(folder, "ddp")))
}

func resumeAtEpochEnd(t *testing.T, c trainer.Config) {
	c.LimitTrainBatches = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stop := trainer.Callback{BatchEnd: func(e *trainer.Event) error {
		time.Sleep(5 * time.Millisecond) // So the ranks vote often.
		if e.Step >= 5 {
			cancel()
		}
		return nil
	}}
	first, _ := newTrainer(t, c, oddTask(optimizer.Adam().LearningRate(0.01).Done()), trainer.WithCallbacks(stop))
	var stopped *trainer.StoppedError
	if err := first.Fit(ctx, ranktest.Blobs(145), nil); !errors.As(err, &stopped) {
		t.Fatal(err)
	}
	second, _ := newTrainer(t, c, oddTask(optimizer.Adam().LearningRate(0.01).Done()))
	if err := second.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Fatal(err)
	}
	if err := second.WaitForCheckpoints(); err != nil {
		t.Fatal(err)
	}
}

func fitAgain(t *testing.T, c trainer.Config) {
	c.ValCheckInterval = 20
	fit := func(tr *trainer.Trainer, stop bool) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		validation := cancelling{30, func() {}}
		if stop {
			validation.cancel = cancel
		}
		err := tr.Fit(ctx, ranktest.Blobs(145), validation)
		var stopped *trainer.StoppedError
		if errors.As(err, &stopped) != stop || err != nil && !stop {
			t.Fatal(err)
		}
	}
	first, _ := newTrainer(t, c, oddTask(optimizer.Adam().LearningRate(0.01).Done()))
	fit(first, true)
	second, _ := newTrainer(t, c, oddTask(optimizer.Adam().LearningRate(0.01).Done()))
	fit(second, true)
	if second.Step() != 20 {
		t.Fatalf("stopped after step %d, want 20", second.Step())
	}
	fit(second, false)
	if err := second.WaitForCheckpoints(); err != nil {
		t.Fatal(err)
	}
}
