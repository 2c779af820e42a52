// Package step builds the programs of a task and runs them: training steps, evaluations and
// predictions. From the losses of a step it builds the whole update: gradients of each objective,
// accumulated over batches, averaged over the ranks by one collective, clipped, and passed to the
// objective's own optimizer.
//
// With accumulation there are two programs: one that only adds gradients, in which the ranks
// communicate for batch normalization at most, and one that updates. The accumulated gradients are
// variables. If histograms are logged, there is a third program, which also returns the gradients.
package step

import (
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	gomlxdist "github.com/gomlx/compute/distributed"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train"
	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/distributed"
	"gonbatch/distributed/weigh"
	"gonbatch/internal/plural"
)

// Options say what to build.
type Options struct {
	World *distributed.World
	Store *model.Store // Of the model's variables.

	Model      ModelFn     // Nil if the task predicts nothing.
	Loss       loss.LossFn // Of predictions; nil if there are Losses.
	EvalLoss   loss.LossFn // Of an evaluation; nil if it is Loss.
	Losses     BuildFn     // Of each objective, in place of Model and Loss; nil if there are these.
	Objectives []Objective
	Metrics    []metric.Interface // Of an evaluation, besides the losses.

	TrainMetrics []Metric
	Precision    Precision
	ClipNorm     float64 // 0: no limit.
	ClipValue    float64 // 0: no limit.
	EMADecay     float64 // 0: no averages of the weights.
	Accumulate   int     // Batches in an update.
	Compress     bool    // Gradients travel in BFloat16.
	LocalNorms   bool    // Batch normalization is over a rank's part of a batch.
	ShareUpdate  bool    // Each rank updates its part of each weight.
	Frozen       []string
	Scales       []Scale // Of learning rates.
	Decays       Decays
	Changes      []GradientFn

	ModelParallel int // Devices that have parts of a weight.
	Axes          []AxisChoice

	Printf     func(format string, args ...any)
	AfterShare func() error // Called when a graph's variables have their values, before it runs.
	AfterBuild func() error // Called once the graph of an update is built, before it runs.
}

// ModelFn maps inputs to predictions.
type ModelFn func(scope *model.Scope, inputs []*graph.Node) []*graph.Node

// BuildFn builds a model, or the losses of a step, in the graph of its inputs.
type BuildFn func(scope *model.Scope, inputs, labels []*graph.Node) []*graph.Node

// GradientFn changes the gradients of an objective.
type GradientFn func(variables []*model.Variable, gradients []*graph.Node) []*graph.Node

// Objective is a loss with the optimizer that minimizes it.
type Objective struct {
	Name      string
	Scope     string // Of the variables that the optimizer changes.
	Optimizer optimizer.Interface
	Decays    bool // The optimizer decays weights.
}

// Step is the programs of a task.
type Step struct {
	Options
	// Train, Eval and Predict check the batches for the programs.
	Train, Eval, Predict Bounds
	// Evaluation computes the losses and metrics of an evaluation.
	Evaluation distributed.Evaluator
	// Prediction is the model's program, which takes inputs without labels.
	Prediction *distributed.Program
	Built      bool            // The program of an update has been built.
	Shown      []ShownGradient // What a program of UpdatesAndShows returns.

	training  map[Kind]*distributed.Program
	division  *distributed.Division // Nil if there is one device.
	parts     *parts                // Nil unless the ranks share the update.
	lossScale *lossScale            // Nil unless the precision needs it.
	state     map[string]bool       // The paths of the variables that the optimizers have created, also before the training was resumed.
	fixed     map[string]bool       // The paths of the model's variables that no optimizer changes.
	halves    map[string]bool       // The paths of the variables for which a model has asked in half precision.
	said      map[string]bool       // See once.
}

// Kind is what a program of a training step does.
type Kind string

// The kinds of training steps.
const (
	Accumulates     Kind = "accumulate"
	Updates         Kind = "update"
	UpdatesAndShows Kind = "update and show" // It returns the gradients.
)

// New returns the programs of a task. They are compiled when they first run.
func New(o Options) (*Step, error) {
	s := &Step{Options: o, training: map[Kind]*distributed.Program{}, state: map[string]bool{}, said: map[string]bool{}}
	var err error
	if s.division, err = o.World.Divide(o.Store, o.ModelParallel, s.axisOf); err != nil {
		return nil, fmt.Errorf("model_parallel: %w", err)
	}
	if o.ShareUpdate && o.World.Size() > 1 { // A single rank has all of it.
		s.parts = &parts{world: o.World, whole: map[string]shapes.Shape{}}
	}
	s.lossScale = newLossScale(o.Store, o.Precision, o.World.Size())
	program := func(name string, build distributed.BuildFn, built func() error) *distributed.Program {
		return o.World.NewProgram(name, o.Store, s.division, build, built)
	}
	for _, kind := range []Kind{Accumulates, Updates, UpdatesAndShows} {
		s.training[kind] = program(string(kind), func(inputs, labels []*graph.Node) []*graph.Node {
			return s.newDraft(kind, inputs, labels).trainingStep()
		}, func() error {
			if kind == Accumulates {
				return nil
			}
			s.Built = true
			return o.AfterBuild()
		})
	}
	e := s.newEvaluation()
	e.program = program("evaluation", e.build, nil)
	s.Evaluation = e
	s.Prediction = program("prediction", func(inputs, _ []*graph.Node) []*graph.Node { return s.newDraft("", inputs, nil).predict() }, nil)
	return s, nil
}

// Training returns the program of a training step. Take reads its results.
func (s *Step) Training(kind Kind) *distributed.Program { return s.training[kind] }

// Divides reports whether devices have parts of the weights.
func (s *Step) Divides() bool { return s.division.Divides() }

// ScalesLoss reports whether the precision needs a loss scale.
func (s *Step) ScalesLoss() bool { return s.lossScale != nil }

// once reports whether something hasn't been checked, or said, before.
func (s *Step) once(what string) bool {
	first := !s.said[what]
	s.said[what] = true
	return first
}

// modelInputs prepares the model's inputs, in the graph of a step.
func (s *Step) modelInputs(inputs []*graph.Node) []*graph.Node {
	if len(inputs) > 0 && !s.LocalNorms {
		s.World.SyncBatchNorm(inputs[0].Graph())
	}
	return s.Precision.inputs(inputs)
}

// share gives all ranks rank 0's weights.
func (s *Step) share() {
	if err := s.World.ShareVariables(s.Store); err != nil {
		panic(err)
	}
	if err := s.AfterShare(); err != nil {
		panic(err)
	}
}

// draft is the graph of a program while it is built.
type draft struct {
	*Step
	graph  *graph.Graph
	kind   Kind          // Empty if it trains nothing.
	inputs []*graph.Node // Of the batch, as all that follows.
	labels []*graph.Node // As they are compared with predictions, once these are built.

	predictions []*graph.Node          // For a task with a step of its own, its inputs.
	losses      []*graph.Node          // Of the objectives, with what layers add to them.
	total       *graph.Node            // The sum of the losses. What layers add is in it once.
	own         []*graph.Node          // The losses of the objectives by themselves.
	changedHere map[string]*graph.Node // The weights that the model has changed, by their paths, as it uses them.
	means       means
	shownHere   *graph.Node // The gradients, if the program returns them.
}

func (s *Step) newDraft(kind Kind, inputs, labels []*graph.Node) *draft {
	g := inputs[0].Graph()
	s.Store.SetTraining(g, kind != "")
	return &draft{Step: s, graph: g, kind: kind, inputs: inputs, labels: slices.Clone(labels), means: means{examples: weigh.Examples(g)}}
}

// trainingStep builds a training step, and returns its results: see Take.
func (s *draft) trainingStep() []*graph.Node {
	s.forward(s.Loss, &s.Train)
	s.share() // All ranks build the same programs for training, but not for evaluation.
	s.update()
	values := []*graph.Node{s.total}
	ofLosses := []weigh.Mean{weigh.Sum(s.means.losses...)}
	for _, i := range s.named() {
		values, ofLosses = append(values, s.own[i]), append(ofLosses, s.means.losses[i])
	}
	for _, m := range s.TrainMetrics {
		values = append(values, m.build(s, s.labels, s.predictions))
	}
	results := append(values, s.means.counts(s.graph, ofLosses))
	if s.lossScale != nil {
		results = append(results, s.lossScale.state(s.graph))
	}
	if s.shownHere != nil {
		results = append(results, s.shownHere)
	}
	return results
}

// Result is what a training step returns.
type Result struct {
	Values    []float64 // The loss, the losses of named objectives, and the training metrics.
	Weights   []float64 // What each of them counts; nil if each counts 1.
	LossScale []float32 // The scale, and the number of updates that were skipped; nil without one.
	Gradients []float32 // In one row (Shown); nil if the program doesn't return them.
}

// named returns which objectives have losses that are shown beside their sum.
func (s *Step) named() (all []int) {
	for i, o := range s.Objectives {
		if s.Losses != nil && o.Name != "" {
			all = append(all, i)
		}
	}
	return all
}

// Take reads the results of a training step, and frees them.
func (s *Step) Take(results []*tensors.Tensor) (r Result, err error) {
	values := 1 + len(s.named()) + len(s.TrainMetrics)
	for _, t := range results[:values] {
		r.Values = append(r.Values, shapes.ConvertTo[float64](t.Value()))
	}
	rest := results[values:]
	if weights := rest[0]; weights.Rank() > 0 {
		r.Weights, err = tensors.CopyFlatData[float64](weights)
	}
	rest = rest[1:]
	if s.lossScale != nil && err == nil {
		r.LossScale, err = tensors.CopyFlatData[float32](rest[0])
		rest = rest[1:]
	}
	if len(rest) > 0 && err == nil {
		r.Gradients, err = tensors.CopyFlatData[float32](rest[0])
	}
	for _, t := range results {
		err = errors.Join(err, t.FinalizeAll())
	}
	return r, err
}

// forward builds the predictions and the losses of a batch.
func (s *draft) forward(f loss.LossFn, b *Bounds) {
	inputs, givenLabels := s.modelInputs(s.inputs), slices.Clone(s.labels)
	outputs := []*graph.Node(nil) // Those of a step of the task's own are not known.
	if s.Losses != nil {
		s.labels = s.Precision.inputs(s.labels)
		s.own = s.stepLosses(inputs)
		s.predictions = countable(inputs)
	} else {
		s.predictions = s.predictionsOf(inputs)
		s.labels = labelsFor(s.predictions, s.labels)
		s.own = []*graph.Node{lossOf(f, s.labels, s.predictions)}
		outputs = s.predictions
	}
	added := s.addedLosses(s.own[0].DType())
	for i, l := range s.own {
		s.own[i] = s.meanLoss(l, added)
	}
	if err := b.learn(s.graph, s.inputs, givenLabels, f); err != nil {
		panic(err)
	}
	if s.kind != "" {
		s.sayDoubts(s.graph, s.inputs, outputs)
	}
	train.AddMainLoss(sum(s.own)) // Where a metric looks for it.
	s.total = train.TotalLoss(s.graph)
	s.losses = []*graph.Node{s.total}
	if len(s.own) > 1 {
		s.losses = slices.Clone(s.own)
		for i, l := range s.losses {
			if added != nil {
				s.losses[i] = graph.Add(l, added)
			}
		}
	}
}

func sum(nodes []*graph.Node) *graph.Node {
	total := nodes[0]
	for _, node := range nodes[1:] {
		total = graph.Add(total, node)
	}
	return total
}

// lossOf builds a loss. Most losses panic if there are no labels, but don't say so.
func lossOf(f loss.LossFn, labels, predictions []*graph.Node) *graph.Node {
	defer func() {
		if len(labels) > 0 {
			return
		}
		if failure := recover(); failure != nil {
			panic(fmt.Errorf("the loss failed, and the dataset has no labels: give it labels, or use a loss without them: %v", failure))
		}
	}()
	value := f(labels, predictions)
	if value == nil {
		panic(errors.New("the loss function has returned nil, not a node"))
	}
	if !value.Shape().IsScalar() {
		value = graph.ReduceAllMean(value)
	}
	return value
}

// stepLosses builds the losses of a task with a step of its own.
func (s *draft) stepLosses(inputs []*graph.Node) []*graph.Node {
	losses := s.Precision.outputs(s.build(inputs, s.labels, s.Losses))
	if objectives := s.Objectives; len(losses) != len(objectives) {
		panic(fmt.Errorf("trainer: the step gave %s for %s", plural.Of(len(losses), "loss"), plural.Of(len(objectives), "objective")))
	}
	for i, l := range losses {
		if !l.Shape().IsScalar() {
			panic(fmt.Errorf("trainer: the loss of %q has the shape %s: it must be a scalar (graph.ReduceAllMean)", s.Objectives[i].Name, l.Shape()))
		}
	}
	return losses
}

// addedLosses returns what layers add to the loss, such as L2 regularization; nil if nothing. It
// converts that from the element type of the weights to that of the loss, and removes divisions by
// 0.
func (s *draft) addedLosses(dtype dtypes.DType) *graph.Node {
	changeTerms(s.graph, func(term *graph.Node) *graph.Node {
		return weigh.Loss(s.Store, graph.ConvertDType(term, dtype)).Value
	})
	return train.TotalLoss(s.graph)
}

// predict builds a prediction.
func (s *draft) predict() []*graph.Node {
	predictions := s.predictionsOf(s.Precision.inputs(s.inputs))
	if err := s.Predict.learn(s.graph, s.inputs, nil, nil); err != nil {
		panic(err)
	}
	return predictions
}

// evaluation computes the metrics of batches, from the newest weights.
type evaluation struct {
	*Step
	metrics []metric.Interface
	program *distributed.Program
	draft   *draft // Of the graph that is being built.
}

var _ distributed.Evaluator = (*evaluation)(nil)

// newEvaluation returns an evaluation of the mean loss, those of named objectives, and the task's
// metrics.
func (s *Step) newEvaluation() *evaluation {
	e := &evaluation{Step: s}
	add := func(name, short string, of func() *graph.Node) {
		e.metrics = append(e.metrics, metric.NewMeanMetric(name, short, metric.LossMetricType, func(*model.Scope, []*graph.Node, []*graph.Node) *graph.Node { return of() }, nil))
	}
	add("Mean Loss", "#loss", func() *graph.Node { return e.draft.total })
	for _, i := range s.named() {
		name := s.Objectives[i].Name
		add("Mean "+name+" loss", "#"+name, func() *graph.Node { return e.draft.own[i] })
	}
	e.metrics = append(e.metrics, s.Metrics...)
	return e
}

func (e *evaluation) build(inputs, labels []*graph.Node) []*graph.Node {
	e.draft = e.newDraft("", inputs, labels)
	f := e.Loss
	if e.EvalLoss != nil {
		f = e.EvalLoss
	}
	e.draft.forward(f, &e.Eval)
	values := make([]*graph.Node, len(e.metrics))
	for i, m := range e.metrics {
		values[i] = m.UpdateGraph(e.Options.Store.RootScope(), e.draft.labels, e.draft.predictions)
	}
	return values
}

func (e *evaluation) Store() *model.Store { return e.Options.Store }

func (e *evaluation) EvalMetrics() []metric.Interface { return e.metrics }

func (e *evaluation) EvalStep(batch train.Batch) ([]*tensors.Tensor, error) {
	return e.program.Run(batch)
}

func (e *evaluation) DistributedEvalStep(_ gomlxdist.Strategy, _ []compute.DeviceNum, batch train.DistributedBatch) ([]*tensors.Tensor, error) {
	return e.program.RunSharded(batch)
}
