package trainer

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

	"gonbatch/distributed"
	"gonbatch/distributed/weigh"
	"gonbatch/internal/plural"
)

// programs are the compiled programs of a task.
type programs struct {
	train      map[programKind]*distributed.Program
	evaluation *evaluation
	prediction *distributed.Program
}

// programKind is what a program of a training step does.
type programKind string

const (
	accumulates     programKind = "accumulate"
	updates         programKind = "update"
	updatesAndShows programKind = "update and show"
)

// open makes the programs. They are compiled when they first run.
func (s *stepper) open() {
	s.programs.train = map[programKind]*distributed.Program{}
	for _, kind := range []programKind{accumulates, updates, updatesAndShows} {
		build := func(inputs, labels []*graph.Node) []*graph.Node { return s.newDraft(kind, inputs, labels).step() }
		s.programs.train[kind] = s.world.NewProgram(s.store, s.division, build, func() error {
			if kind == accumulates {
				return nil
			}
			s.built = true
			return s.afterBuild()
		})
	}
	s.programs.evaluation = s.newEvaluation()
	s.programs.prediction = s.world.NewProgram(s.store, s.division, func(inputs, _ []*graph.Node) []*graph.Node { return s.newDraft("", inputs, nil).predict() }, nil)
}

// draft is the graph of a program while it is built.
type draft struct {
	*stepper
	graph  *graph.Graph
	kind   programKind   // Empty if it trains nothing.
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

func (s *stepper) newDraft(kind programKind, inputs, labels []*graph.Node) *draft {
	g := inputs[0].Graph()
	s.store.SetTraining(g, kind != "")
	return &draft{stepper: s, graph: g, kind: kind, inputs: inputs, labels: slices.Clone(labels), means: means{examples: weigh.Examples(g)}}
}

// step builds a training step, and returns its results: see takeStep.
func (s *draft) step() []*graph.Node {
	s.forward(s.task.loss, &s.trainBounds)
	s.share() // All ranks build the same programs for training, but not for evaluation.
	s.update()
	values := []*graph.Node{s.total}
	ofLosses := []weigh.Mean{weigh.Sum(s.means.losses...)}
	for i, o := range s.task.objectives {
		if s.task.step != nil && o.Name != "" {
			values, ofLosses = append(values, s.own[i]), append(ofLosses, s.means.losses[i])
		}
	}
	for _, m := range s.trainMetrics {
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

// stepResult is what a training step returns.
type stepResult struct {
	values    []float64 // The loss, the losses of named objectives, and the training metrics.
	weights   []float64 // What each of them counts; nil if each counts 1.
	scale     []float32 // See lossScale.state; nil without one.
	gradients []float32 // In one row; nil if the program doesn't return them.
}

// takeStep reads the results of a training step with this many values, and frees them.
func (s *stepper) takeStep(results []*tensors.Tensor, values int) (r stepResult, err error) {
	for _, t := range results[:values] {
		r.values = append(r.values, shapes.ConvertTo[float64](t.Value()))
	}
	rest := results[values:]
	if weights := rest[0]; weights.Rank() > 0 {
		r.weights, err = tensors.CopyFlatData[float64](weights)
	}
	rest = rest[1:]
	if s.lossScale != nil && err == nil {
		r.scale, err = tensors.CopyFlatData[float32](rest[0])
		rest = rest[1:]
	}
	if len(rest) > 0 && err == nil {
		r.gradients, err = tensors.CopyFlatData[float32](rest[0])
	}
	for _, t := range results {
		err = errors.Join(err, t.FinalizeAll())
	}
	return r, err
}

// forward builds the predictions and the losses of a batch.
func (s *draft) forward(f loss.LossFn, bounds *bounds) {
	inputs, givenLabels := s.stepper.inputs(s.inputs), slices.Clone(s.labels)
	outputs := []*graph.Node(nil) // Those of a step of the task's own are not known.
	if s.task.step != nil {
		s.labels = s.precision.inputs(s.labels)
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
	if err := bounds.learn(s.graph, s.inputs, givenLabels, f); err != nil {
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

// stepLosses builds the losses of a task with a step of its own.
func (s *draft) stepLosses(inputs []*graph.Node) []*graph.Node {
	losses := s.precision.outputs(s.build(inputs, s.labels, modelGraph(s.task.step)))
	if objectives := s.task.objectives; len(losses) != len(objectives) {
		panic(fmt.Errorf("trainer: the step gave %s for %s", plural.Of(len(losses), "loss"), plural.Of(len(objectives), "objective")))
	}
	for i, l := range losses {
		if !l.Shape().IsScalar() {
			panic(fmt.Errorf("trainer: the loss of %q has the shape %s: it must be a scalar (graph.ReduceAllMean)", s.task.objectives[i].Name, l.Shape()))
		}
	}
	return losses
}

// addedLosses returns what layers add to the loss, such as L2 regularization; nil if nothing. It
// converts that from the element type of the weights to that of the loss, and removes divisions by
// 0.
func (s *draft) addedLosses(dtype dtypes.DType) *graph.Node {
	changeTerms(s.graph, func(term *graph.Node) *graph.Node {
		return weigh.Loss(s.store, graph.ConvertDType(term, dtype)).Value
	})
	return train.TotalLoss(s.graph)
}

// predict builds a prediction.
func (s *draft) predict() []*graph.Node {
	predictions := s.predictionsOf(s.precision.inputs(s.inputs))
	if err := s.predictBounds.learn(s.graph, s.inputs, nil, nil); err != nil {
		panic(err)
	}
	return predictions
}

// evaluation computes the metrics of batches, from the newest weights.
type evaluation struct {
	*stepper
	metrics []metric.Interface
	program *distributed.Program
	draft   *draft // Of the graph that is being built.
}

var _ distributed.Evaluator = (*evaluation)(nil)

// newEvaluation returns an evaluation of the mean loss, those of named objectives, and the task's
// metrics.
func (s *stepper) newEvaluation() *evaluation {
	e := &evaluation{stepper: s}
	e.program = s.world.NewProgram(s.store, s.division, e.build, nil)
	add := func(name, short string, of func() *graph.Node) {
		e.metrics = append(e.metrics, metric.NewMeanMetric(name, short, metric.LossMetricType, func(*model.Scope, []*graph.Node, []*graph.Node) *graph.Node { return of() }, nil))
	}
	add("Mean Loss", "#loss", func() *graph.Node { return e.draft.total })
	for i, o := range s.task.objectives {
		if s.task.step != nil && o.Name != "" {
			add("Mean "+o.Name+" loss", "#"+o.Name, func() *graph.Node { return e.draft.own[i] })
		}
	}
	e.metrics = append(e.metrics, s.task.metrics...)
	return e
}

func (e *evaluation) build(inputs, labels []*graph.Node) []*graph.Node {
	e.draft = e.newDraft("", inputs, labels)
	f := e.task.loss
	if e.task.evalLoss != nil {
		f = e.task.evalLoss
	}
	e.draft.forward(f, &e.evalBounds)
	values := make([]*graph.Node, len(e.metrics))
	for i, m := range e.metrics {
		values[i] = m.UpdateGraph(e.store.RootScope(), e.draft.labels, e.draft.predictions)
	}
	return values
}

func (e *evaluation) Store() *model.Store { return e.store }

func (e *evaluation) EvalMetrics() []metric.Interface { return e.metrics }

func (e *evaluation) EvalStep(batch train.Batch) ([]*tensors.Tensor, error) {
	return e.program.Run(batch)
}

func (e *evaluation) DistributedEvalStep(_ gomlxdist.Strategy, _ []compute.DeviceNum, batch train.DistributedBatch) ([]*tensors.Tensor, error) {
	return e.program.RunSharded(batch)
}
