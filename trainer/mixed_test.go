package trainer_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/layers/regularizer"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/model/initializer"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed/ranktest"
	"gonbatch/internal/tier"
	"gonbatch/models"
	"gonbatch/models/cnn"
	"gonbatch/trainer"
)

// mixed are the precisions with weights in float32.
var mixed = []string{"bf16-mixed", "16-mixed"}

// TestMixedPrecision: it learns, and the store has the weights, the statistics and the optimizer's
// state in single precision, although the model computes in half.
func TestMixedPrecision(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		for i, name := range mixed {
			var computes []dtypes.DType
			net := func(scope *model.Scope, x *graph.Node) *graph.Node {
				y := smallNet(scope, x)
				computes = append(computes, x.DType(), y.DType(), trainer.ComputeDType(y))
				return y
			}
			c := trainer.Config{MaxEpochs: 4, BatchSize: 12, Precision: name}
			if i == 0 { // Before Fit, the ranks share a model that only evaluates.
				untrained, _ := newTrainer(t, c, blobTask(net))
				if metrics, err := untrained.Test(t.Context(), ranktest.Blobs(103)); err != nil || metrics["test/accuracy"] > 0.9 {
					t.Errorf("%s: %v, %v", name, metrics, err)
				}
			}
			tr, out := newTrainer(t, c, blobTask(net))
			if err := tr.Fit(t.Context(), ranktest.Blobs(145), ranktest.Blobs(50)); err != nil {
				t.Fatal(err)
			}
			for v := range tr.Store().IterVariables() {
				if v.DType().IsFloat() && v.DType() != dtypes.Float32 {
					t.Errorf("%s: %s is %s", name, v.Path(), v.DType())
				}
			}
			for _, dtype := range computes {
				if want := []dtypes.DType{dtypes.BFloat16, dtypes.Float16}[i]; dtype != want {
					t.Errorf("%s computes in %s", name, dtype)
				}
			}
			metrics, err := tr.Test(t.Context(), ranktest.Blobs(103))
			if err != nil || metrics["test/accuracy"] < 0.8 || strings.Contains(out.String(), "ComputeDType") {
				t.Errorf("%s: %v, %v:\n%s", name, metrics, err, out)
			}
		}
	})
}

// TestMixedIsLikeSingle: it begins with the same weights as single precision, and stays close,
// closer than with weights of half precision.
func TestMixedIsLikeSingle(t *testing.T) {
	fit := func(precision string, steps int, o optimizer.Interface) []float64 {
		c := trainer.Config{Precision: precision, MaxSteps: steps, MaxEpochs: 9, BatchSize: 24, Seed: 5, Loggers: []string{"none"}}
		tr, _ := newTrainer(t, c, trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, o))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(err)
		}
		return trainedFloats(t, tr, "/")
	}
	for name, o := range map[string]optimizer.Interface{
		"momentum": trainer.SGD{LearningRate: 0.02, Momentum: 0.9},
		"Adam":     optimizer.Adam().LearningRate(0.002).Done(),
		"AdamW":    optimizer.Adam().LearningRate(0.002).WeightDecay(0.1).Done(),
	} {
		begin, want := fit("32-true", 1, plainSGD(1e-9)), fit("32-true", 30, o)
		length := distance(want, begin)
		half := distance(fit("bf16-true", 30, o), want) / length
		for _, precision := range mixed {
			if d := distance(fit(precision, 1, plainSGD(1e-9)), begin); d > 1e-9 {
				t.Errorf("%s begins %g from the weights of 32-true", precision, d)
			}
			off := distance(fit(precision, 30, o), want) / length
			t.Logf("%s: %s is off by %.4f of the way, bf16-true by %.4f", name, precision, off, half)
			if limit := map[string]float64{"bf16-mixed": 0.03, "16-mixed": 0.004}[precision]; !(off < limit) || !(off < half/2) {
				t.Errorf("%s: %s is off by %g of the way, bf16-true by %g", name, precision, off, half)
			}
		}
	}
}

// TestMixedKeepsSmallUpdates: 64 updates of 2^-10 move a weight of 1 by 2^-4. In bfloat16 it would
// stay, as the next smaller number is 1 - 2^-8.
func TestMixedKeepsSmallUpdates(t *testing.T) {
	for precision, want := range map[string]float64{"32-true": 1 - 1./16, "bf16-mixed": 1 - 1./16, "16-mixed": 1 - 1./16, "bf16-true": 1} {
		c := trainer.Config{Precision: precision, MaxSteps: 64, MaxEpochs: 9, BatchSize: 4, Loggers: []string{"none"}}
		tr, _ := newTrainer(t, c, sloped(plainSGD(1./256)))
		if err := tr.Fit(t.Context(), flat(64, 0), nil); err != nil {
			t.Fatal(err)
		}
		if got := slope(t, tr); math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: the weight is %g, want %g", precision, got, want)
		}
	}
}

// convNet is a CNN with batch normalization.
func convNet(scope *model.Scope, x *graph.Node) *graph.Node {
	x = cnn.Convolution(scope.In("conv"), x).KernelSize(3).Channels(4).Done()
	x = graph.MaxScalar(cnn.BatchNorm(scope.In("norm"), x).Done(), 0)
	return layers.Dense(scope.In("logits"), graph.Reshape(x, x.Shape().Dimensions[0], -1), true, ranktest.Classes)
}

// TestMixedBatchNorm: the moving averages are computed in single precision, in which they follow
// small changes.
func TestMixedBatchNorm(t *testing.T) {
	fit := func(precision string) (averages []float64, accuracy float64) {
		c := trainer.Config{Precision: precision, MaxSteps: 60, MaxEpochs: 9, BatchSize: 24, Seed: 5, Loggers: []string{"none"}}
		sgd := trainer.SGD{LearningRate: 1e-4}
		store := model.NewStore()
		store.SetParam("/"+regularizer.ParamL2, 1e-4)
		tr, _ := newTrainer(t, c, trainer.Supervised(convNet, loss.SparseCategoricalCrossEntropyLogits, sgd), trainer.WithStore(store))
		if err := tr.Fit(t.Context(), ranktest.Blobs(240), nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"mean", "variance"} {
			v := tr.Store().GetVariable("/norm/batch_normalization/" + name)
			for _, x := range tensors.MustCopyFlatData[float32](v.MustValue()) {
				averages = append(averages, float64(x))
			}
		}
		metrics, err := tr.Test(t.Context(), ranktest.Blobs(103))
		if err != nil {
			t.Fatal(err)
		}
		return averages, metrics["test/loss"]
	}
	want, single := fit("32-true")
	for _, precision := range mixed {
		got, value := fit(precision)
		if d := distance(got, want) / distance(want, make([]float64, len(want))); !(d < 0.005) || math.Abs(value-single) > 0.02 {
			t.Errorf("%s: the averages differ by %g, the loss is %g, want %g", precision, d, value, single)
		}
	}
}

// sentences are tokens, each of which follows from the one before.
type sentences int

func (s sentences) Name() string { return "sentences" }
func (s sentences) Len() int     { return int(s) }

func (s sentences) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	const n = 6
	var tokens, next []int32
	for _, index := range indices {
		for i := range n {
			tokens, next = append(tokens, int32(index+3*i)%7), append(next, int32(index+3*i+3)%7)
		}
	}
	return []*tensors.Tensor{tensors.FromFlatDataAndDimensions(tokens, len(indices), n)}, []*tensors.Tensor{tensors.FromFlatDataAndDimensions(next, len(indices), n)}, nil
}

// TestPrecisionOfTokens: a GPT, whose inputs are integers, computes in the precision of the
// training run, and learns.
func TestPrecisionOfTokens(t *testing.T) {
	tier.Long(t)
	hereAndOnTwoRanks(t, testPrecisionOfTokens)
}

func testPrecisionOfTokens(t *testing.T) {
	gpt := models.GPT(models.GPTConfig{VocabSize: 7, ContextLength: 6, Layers: 1, Heads: 2, Width: 16, Dropout: 0.1})
	for _, want := range []struct {
		precision         string
		computes, weights dtypes.DType
	}{
		{"32-true", dtypes.Float32, dtypes.Float32}, {"bf16-mixed", dtypes.BFloat16, dtypes.Float32}, {"16-mixed", dtypes.Float16, dtypes.Float32},
		{"bf16-true", dtypes.BFloat16, dtypes.BFloat16}, {"64-true", dtypes.Float64, dtypes.Float64},
	} {
		precision := want.precision
		net := func(scope *model.Scope, tokens *graph.Node) *graph.Node {
			logits := gpt(scope, tokens)
			if logits.DType() != want.computes {
				t.Errorf("%s: the GPT computes in %s", precision, logits.DType())
			}
			return logits
		}
		c := trainer.Config{Precision: precision, MaxEpochs: 12, BatchSize: 14, Seed: 5, Loggers: []string{"none"}}
		tr, out := newTrainer(t, c, trainer.Supervised(net, models.NextTokenLoss, optimizer.Adam().LearningRate(0.01).Done()))
		if err := tr.Fit(t.Context(), sentences(140), nil); err != nil {
			t.Fatal(precision, err)
		}
		for v := range tr.Store().IterVariables() {
			if v.Trainable && v.DType() != want.weights {
				t.Errorf("%s: %s is %s", precision, v.Path(), v.DType())
			}
		}
		metrics, err := tr.Test(t.Context(), sentences(21))
		if err != nil || !(metrics["test/loss"] < 0.3) || strings.Contains(out.String(), "ComputeDType") {
			t.Errorf("%s: %v, %v:\n%s", precision, metrics, err, out)
		}
	}
}

// TestForeignTokens: if a model of tokens computes in single precision, the trainer says so; with
// ComputeDType it computes in half.
func TestForeignTokens(t *testing.T) { hereAndOnTwoRanks(t, testForeignTokens) }

func testForeignTokens(t *testing.T) {
	net := func(converts bool) func(*model.Scope, *graph.Node) *graph.Node {
		return func(scope *model.Scope, tokens *graph.Node) *graph.Node {
			x := layers.Embedding(scope, graph.InsertAxes(tokens, -1), dtypes.Float32, 7, 8)
			if converts {
				x = graph.ConvertDType(x, trainer.ComputeDType(x))
			}
			return layers.Dense(scope.In("next"), x, true, 7)
		}
	}
	for _, precision := range append([]string{"32-true", "bf16-true"}, mixed...) {
		for _, converts := range []bool{false, true} {
			c := trainer.Config{Precision: precision, MaxSteps: 2, BatchSize: 14, Loggers: []string{"none"}}
			tr, out := newTrainer(t, c, trainer.Supervised(net(converts), models.NextTokenLoss, optimizer.Adam().LearningRate(0.01).Done()))
			if err := tr.Fit(t.Context(), sentences(70), nil); err != nil {
				t.Fatal(err)
			}
			says := fmt.Sprintf("precision %s: the model asks for 3 weights in types other than ", precision)
			if want := world(t).IsMain() && !converts && precision != "32-true" && precision != "bf16-true"; strings.Count(out.String(), says) == 1 != want {
				t.Errorf("%s, converts %v:\n%s", precision, converts, out)
			}
		}
	}
}

// TestMixedValues: variables with values of their own, not used, not trained, and without elements
// have the values that they have in single precision.
func TestMixedValues(t *testing.T) {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		g := x.Graph()
		given := scope.In("given").VariableWithValue("w", shapes.CastAsDType([]float64{0.5}, x.DType()))
		fixed := scope.In("fixed").WithInitializer(initializer.One).VariableWithShape("w", shapes.Make(x.DType(), 2)).SetTrainable(false)
		scope.In("unused").VariableWithShape("w", shapes.Make(x.DType(), 3))
		empty := scope.In("empty").VariableWithShape("w", shapes.Make(x.DType(), 0, 3)).SetTrainable(false)
		exact := scope.In("exact").VariableWithShape("w", shapes.Make(dtypes.Float32, 4))
		y := graph.Add(oneLayer(scope, x), graph.ReduceAllSum(graph.ConvertDType(exact.NodeValue(g), x.DType())))
		return graph.Mul(graph.Add(y, graph.ReduceAllSum(empty.NodeValue(g))), graph.Mul(graph.ReduceAllMax(fixed.NodeValue(g)), graph.ReduceAllMax(given.NodeValue(g))))
	}
	fit := func(precision string) map[string]shapes.Shape {
		c := trainer.Config{Precision: precision, MaxSteps: 3, BatchSize: 24, Seed: 5, Loggers: []string{"none"}}
		tr, _ := newTrainer(t, c, trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(1e-9)))
		if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
			t.Fatal(precision, err)
		}
		all := map[string]shapes.Shape{}
		for v := range tr.Store().IterVariables() {
			all[v.Path()] = v.Shape()
		}
		if got := tensors.MustCopyFlatData[float32](tr.Store().GetVariable("/given/w").MustValue())[0]; precision != "bf16-true" && math.Abs(float64(got)-0.5) > 1e-6 {
			t.Errorf("%s: the given value is %g", precision, got)
		}
		if v := tr.Store().GetVariable("/fixed/w"); v.Trainable || !v.HasValue() {
			t.Errorf("%s: %s: trainable %v, has a value %v", precision, v.Path(), v.Trainable, v.HasValue())
		}
		return all
	}
	want := fit("32-true")
	for _, precision := range mixed {
		got := fit(precision)
		for path, shape := range want {
			if !strings.HasPrefix(path, "/metrics/") && !got[path].Equal(shape) {
				t.Errorf("%s: %s is %s, want %s", precision, path, got[path], shape)
			}
		}
	}
}

// TestMixedStores: a training run in mixed precision begins with weights of single precision, from
// another trainer, a store or a checkpoint, and the other way round. Weights of half precision are
// refused.
func TestMixedStores(t *testing.T) {
	fit := func(precision, dir string, options ...trainer.Option) (*trainer.Trainer, error) {
		c := trainer.Config{Precision: precision, MaxSteps: 3, BatchSize: 24, Seed: 5, Loggers: []string{"none"}, Checkpoint: trainer.CheckpointConfig{Dir: dir}}
		tr, _ := newTrainer(t, c, sgdTask(0.05), options...)
		err := tr.Fit(t.Context(), ranktest.Blobs(145), nil)
		return tr, errors.Join(err, tr.WaitForCheckpoints())
	}
	folders, trained := map[string]string{}, map[string]*trainer.Trainer{}
	for _, precision := range append([]string{"32-true", "bf16-true"}, mixed...) {
		var err error
		folders[precision] = t.TempDir()
		if trained[precision], err = fit(precision, folders[precision]); err != nil {
			t.Fatal(err)
		}
	}
	for from, other := range trained {
		for _, to := range append([]string{"32-true"}, mixed...) {
			for name, option := range map[string]trainer.Option{
				"InitFrom": trainer.InitFrom(folders[from]), "InitFromTrainer": trainer.InitFromTrainer(other), "WithStore": trainer.WithStore(clone(t, other)),
			} {
				_, err := fit(to, t.TempDir(), option)
				if wants := from != "bf16-true"; (err == nil) != wants {
					t.Errorf("%s of %s into %s: %v", name, from, to, err)
				}
			}
			test, _ := newTrainer(t, trainer.Config{Precision: to, Checkpoint: trainer.CheckpointConfig{Dir: folders[from]}}, sgdTask(0.05))
			if _, err := test.Test(t.Context(), ranktest.Blobs(24)); (err == nil) != (from != "bf16-true") {
				t.Errorf("the checkpoint of %s tested in %s: %v", from, to, err)
			}
		}
	}
}

// TestMixedForeignVariable: a model may look for a variable that only its store has.
func TestMixedForeignVariable(t *testing.T) {
	net := func(scope *model.Scope, x *graph.Node) *graph.Node {
		return graph.Mul(oneLayer(scope, x), graph.ConvertDType(scope.GetVariable("table").NodeValue(x), x.DType()))
	}
	store := model.NewStore()
	store.VariableWithValue("/table", float32(2)).SetTrainable(false)
	task := trainer.Supervised(net, loss.SparseCategoricalCrossEntropyLogits, plainSGD(0.1))
	tr, _ := newTrainer(t, trainer.Config{Precision: "bf16-mixed", MaxSteps: 1, BatchSize: 12}, task, trainer.WithStore(store))
	if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); err != nil {
		t.Error(err)
	}
}

// clone returns a store with the trained weights of a trainer.
func clone(t *testing.T, tr *trainer.Trainer) *model.Store {
	t.Helper()
	store := model.NewStore()
	for v := range tr.Store().IterVariables() {
		if !v.Trainable {
			continue
		}
		value, err := v.MustValue().LocalClone()
		if err == nil {
			_, err = store.CreateVariable(v.Path(), value)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// TestMixedResumes: a training run in mixed precision that is killed after any update resumes bit
// for bit, on one device, several, and several ranks that share the update.
func TestMixedResumes(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		for i, precision := range mixed {
			fit := func(dir string, kill int64) map[string][]byte {
				c := trainer.Config{
					Precision: precision, MaxSteps: 9, MaxEpochs: 3, BatchSize: 12, Seed: 3, AccumulateGradBatches: 1 + i, EMADecay: 0.9, Loggers: []string{"none"},
					Checkpoint: trainer.CheckpointConfig{Dir: dir, EverySteps: 1},
				}
				if world(t).Size() > 1 && i == 1 {
					c.Strategy = "zero1"
				}
				tr, _ := newTrainer(t, c, blobTask(smallNet), killAt(kill))
				if err := tr.Fit(t.Context(), ranktest.Blobs(145), nil); kill < 0 && err != nil || kill > 0 && !errors.Is(err, errKilled) {
					t.Fatal(err)
				}
				if err := tr.WaitForCheckpoints(); err != nil {
					t.Fatal(err)
				}
				return weights(t, tr.Store())
			}
			const never = -1
			alone, dir := shared(t), shared(t)
			want := fit(alone, never)
			for _, kill := range []int64{2, 5, 6} {
				fit(dir, kill)
			}
			compareWeights(t, fit(dir, never), want)
		}
	})
}

// shared returns a new folder, the same on all ranks.
func shared(t *testing.T) string {
	t.Helper()
	dir, err := world(t).Broadcast([]byte(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	return string(dir)
}

// TestMixedForecast: XLA's compiler for H100 takes the step too, which computes in half precision
// with weights and an optimizer's state of the size that they have in single precision.
func TestMixedForecast(t *testing.T) {
	tier.Long(t)
	const precision = "PRECISION"
	if ranktest.InRank() {
		c := trainer.Config{Precision: os.Getenv(precision), MaxSteps: 2, BatchSize: 16, GradientClipNorm: 1, EMADecay: 0.9, Loggers: []string{"none"}}
		tr, _ := newTrainer(t, c, oddTask(optimizer.Adam().Done()))
		t.Fatalf("the training was not ended: %v", tr.Fit(t.Context(), ranktest.Blobs(145), nil))
	}
	single := askForecast(t, precision+"=32-true")
	for _, name := range mixed {
		got := askForecast(t, precision+"="+name)
		t.Logf("%s: %+v; 32-true: %+v", name, got.Memory, single.Memory)
		if !got.Half || single.Half || got.FLOPs != single.FLOPs {
			t.Errorf("%s: %g operations, half precision %v; 32-true: %g, %v", name, got.FLOPs, got.Half, single.FLOPs, single.Half)
		}
		if more := got.Memory.Optimizer - single.Memory.Optimizer; got.Memory.Parameters != single.Memory.Parameters || more < 0 || more > 100 {
			t.Errorf("%s needs %+v, 32-true %+v", name, got.Memory, single.Memory)
		}
	}
}
