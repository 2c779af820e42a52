package trainer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"

	"gonbatch/checkpoint"
	"gonbatch/distributed"
	"gonbatch/internal/rundir"
	"gonbatch/internal/unread"
	"gonbatch/logger"
	"gonbatch/trainer/internal/initial"
	"gonbatch/trainer/internal/profile"
	"gonbatch/trainer/internal/saved"
	"gonbatch/trainer/internal/show"
	"gonbatch/trainer/internal/step"
	"gonbatch/trainer/internal/stop"
)

// Trainer trains a task. It must be used by one goroutine at a time, and all ranks must call the
// same methods in the same order.
type Trainer struct {
	chosen
	progress
	source
	env      environment
	world    *distributed.World
	given    Config // By the program, without flags, defaults and names.
	config   Config
	task     Task
	step     *step.Step
	rates    *rates
	display  *show.Display
	recorder *profile.Recorder
	folder   *saved.Folder // Nil if there are no checkpoints.
	randoms  *saved.Randoms
	listener *stop.Listener
	isNamed  bool // The program has chosen the name.
	life     life
	told     error // The error of this Fit of which the callbacks know.
	saidNaN  bool  // A mean loss was NaN, and a warning has said so.
}

// chosen is what options have chosen.
type chosen struct {
	store     *model.Store
	schedule  Schedule // Nil if the learning rates never change.
	logger    logger.Logger
	out       io.Writer
	callbacks []Callback
	further   []validationSet
	initial   initial.All  // In the order of the options.
	choices   step.Options // About the step.

	// For a phase after another one: the parameters of LogParams there, the steps after which the
	// phases before ended, and why there can't be one.
	ownParams  map[string]any
	beganAfter []int64
	refused    error
}

// progress is how far a training run has come.
type progress struct {
	at      position
	plan    plan
	loss    float64   // Of the last batch, on this rank.
	metrics Metrics   // The newest value of each metric.
	saved   *position // Of the newest checkpoint.
	earlier *int64    // Updates of the trainers before this one; nil until Fit begins.
}

// source is where the weights of a trainer come from.
type source struct {
	hadOwn   bool                 // The store had trained weights when the trainer was made.
	looked   bool                 // The newest checkpoint was looked for, and read if there is one.
	origin   origin               // That checkpoint.
	snapshot *checkpoint.Snapshot // Its values, until the training's program is built and compared with them.
	added    []string             // The scopes of variables that this training adds, which that checkpoint lacks.
	dropped  bool                 // That checkpoint has averages, but the weights have none.
	means    meaning              // Of the set that the weights were trained on.
	loaded   string               // What LoadBest or LoadAverage has loaded; empty if neither was called.
	isShared bool                 // All ranks have the same, before there is a step.
	said     bool                 // Which weights the model has: see sayWeights.
}

// life is where a trainer is in its life. Each state is followed by the next one, but a Fit that
// fails leaves it ready.
type life int

const (
	made    life = iota
	resumed      // Fit has resumed its training, if there is one to resume.
	ready        // The loggers know where it resumes.
	fitting      // Fit is running.
	fitted       // Fit has trained to the end.
)

// Option changes the Trainer that New returns.
type Option func(*chosen)

// WithStore makes the trainer use a store of variables with its own hyper-parameters. The trainer
// sets the seed in the store. The optimizers' learning rates are the task's, even if the store has
// those of an earlier training run.
func WithStore(store *model.Store) Option { return func(o *chosen) { o.store = store } }

// WithCallbacks adds callbacks. They are called in this order.
func WithCallbacks(callbacks ...Callback) Option {
	return func(o *chosen) { o.callbacks = append(o.callbacks, callbacks...) }
}

// WithSchedule replaces the configured schedule.
func WithSchedule(s Schedule) Option { return func(o *chosen) { o.schedule = s } }

// WithLogger replaces the configured loggers. Only rank 0 uses l. Unless l is a logger.Multi, it is
// wrapped in one, so that it can't stop the training. The trainer closes it with the world.
func WithLogger(l logger.Logger) Option { return func(o *chosen) { o.logger = l } }

// WithOutput makes rank 0 show its progress on out instead of standard output.
func WithOutput(out io.Writer) Option { return func(o *chosen) { o.out = out } }

// New prepares a training run. Flags, the environment and a file may change the configuration (see
// [Config.AddFlags]).
func New(world *distributed.World, config Config, task Task, options ...Option) (t *Trainer, err error) {
	defer func() { err = unread.Error("trainer.New", err) }()
	if world == nil {
		return nil, errors.New("trainer: the world is nil: check the error of distributed.Init")
	}
	env, given := readEnvironment(os.Getenv), config
	if config, err = config.resolved(env.getenv); err != nil {
		return nil, err
	}
	config.warnings = append(config.warnings, config.misspelled(os.Environ())...)
	config = config.inPhase()
	if err := task.check(); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	if err := errors.Join(fitDevices(config, world), checkWorld(config, world, env), checkElementwise(config, task.objectives), world.CheckMetrics(task.metrics)); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	isNamed := config.Name != ""
	config.Name = names.add(config.Name, env.Cell)
	config.Checkpoint.Dir = config.checkpointDir(env.Env)
	if config.Profile.Dir, err = config.profileDir(env.Env); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	config.Loader = LoaderConfig(world.Loading(distributed.Loading(config.Loader)))
	chosen := chosen{store: model.NewStore(), schedule: config.Schedule.schedule(), out: os.Stdout, ownParams: map[string]any{}}
	for _, option := range options {
		option(&chosen)
	}
	t = &Trainer{chosen: chosen, progress: progress{metrics: Metrics{}}, env: env, world: world, given: given, config: config, task: task, isNamed: isNamed}
	t.rates = &rates{schedule: t.schedule, objectives: task.objectives, base: checkpoint.Metrics{}, reduced: 1}
	if err := errors.Join(t.refused, checkCallbacks(t.callbacks), t.checkScopes(), checkValidations(t.further), t.checkTrainMetrics()); err != nil {
		return nil, fmt.Errorf("trainer: %w", err)
	}
	if err := t.open(); err != nil {
		return nil, err
	}
	for _, line := range config.warnings {
		t.printf("%swarning: %s\n", t.label(), line)
	}
	return t, nil
}

// open creates the trainer's parts.
func (t *Trainer) open() error {
	for v := range t.store.IterVariables() {
		t.hadOwn = t.hadOwn || v.Trainable && v.HasValue()
	}
	t.store.SetParam("/"+model.ParamInitialSeed, int64(t.config.Seed))
	t.rates.store = t.store
	if err := t.rates.forget(); err != nil {
		return err
	}
	for _, scope := range []string{step.AverageScope, step.ScaleScope} { // Of an earlier training run.
		if err := t.store.DeleteVariablesInScope(scope); err != nil {
			return fmt.Errorf("trainer: delete %s: %w", scope, err)
		}
	}
	t.randoms = &saved.Randoms{Store: t.store}
	// XLA's results differ in some bits if the order of a program's variables differs. A checkpoint
	// brings these two variables before the model is built, so they come first in every training
	// run.
	if err := t.randoms.Seed(t.config.Seed); err != nil {
		return fmt.Errorf("trainer: seed %d: %w", t.config.Seed, err)
	}
	optimizer.GetGlobalStepVar(t.store)
	var err error
	if t.step, err = step.New(t.stepOptions()); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	t.display = show.New(t.out, t.world.IsMain(), t.env.InRun())
	t.listener = stop.Listen(t.world, t.env.RequeueCode)
	if t.recorder, err = profile.New(t.world, t.config.Profile.Steps); err != nil {
		return err
	}
	if t.folder, err = openFolder(t.world, t.config); err != nil {
		return err
	}
	if err := t.initial.Begin(t.world, t.store); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	t.openLogger()
	var flushes []func() error
	if t.logger != nil {
		t.world.OnClose(t.logger.Close)
		flushes = append(flushes, t.logger.Close)
	}
	t.listener.Add(t.folder == nil, append(flushes, t.folder.Close)...)
	return nil
}

// stepOptions says what the training's programs are.
func (t *Trainer) stepOptions() step.Options {
	o, c := t.choices, t.config
	o.World, o.Store, o.Printf, o.AfterShare, o.AfterBuild = t.world, t.store, t.printf, t.randoms.Restore, t.built
	o.Model, o.Loss, o.EvalLoss, o.Losses, o.Metrics = step.ModelFn(t.task.model), t.task.loss, t.task.evalLoss, step.BuildFn(t.task.step), t.task.metrics
	for _, objective := range t.task.objectives {
		o.Objectives = append(o.Objectives, step.Objective{Name: objective.Name, Scope: objective.Scope, Optimizer: objective.Optimizer, Decays: hasDecay(objective)})
	}
	o.Precision, o.ClipNorm, o.ClipValue, o.EMADecay, o.Accumulate = step.Precision(c.Precision), c.GradientClipNorm, c.GradientClipValue, c.EMADecay, c.AccumulateGradBatches
	o.Compress, o.LocalNorms, o.ShareUpdate, o.ModelParallel = c.GradientCompression == bf16Compression, c.LocalBatchNorm, c.Strategy == step.Zero1, c.ModelParallel
	return o
}

// openLogger opens the logger on rank 0, and leaves it nil on other ranks.
func (t *Trainer) openLogger() {
	_, guarded := t.logger.(*logger.Multi)
	switch {
	case !t.world.IsMain():
		t.logger = nil
	case t.logger == nil:
		t.logger = openLoggers(t.config, t.env)
	case !guarded:
		t.logger = logger.NewMulti(logger.MultiOptions{}, t.logger)
	}
}

// built is called when the program of an update has been built, before it runs for the first time.
func (t *Trainer) built() error {
	restored := t.snapshot
	if err := errors.Join(t.checkRestored(), t.checkInitial()); err != nil {
		return err
	}
	t.initial = nil
	if err := t.rates.learn(restored, t.printf); err != nil {
		return err
	}
	if err := t.logRates(); err != nil {
		return err
	}
	if err := t.rates.set(int(t.at.Step), t.plan.updates); err != nil {
		return err
	}
	return t.world.Settle(t.store)
}

// World returns the world in which the task is trained.
func (t *Trainer) World() *distributed.World { return t.world }

// Store returns the store of the model's variables and hyper-parameters.
func (t *Trainer) Store() *model.Store { return t.store }

// Config returns the configuration in effect: with defaults, with the changes by flags, the
// environment and a file, and with the folder of checkpoints.
func (t *Trainer) Config() Config { return t.config }

// Logger returns the logger of rank 0. It is nil on other ranks, and if nothing is logged.
func (t *Trainer) Logger() logger.Logger { return t.logger }

// Step returns the number of updates of the weights so far.
func (t *Trainer) Step() int64 { return t.at.Step }

// printf prints on rank 0.
func (t *Trainer) printf(format string, args ...any) {
	if t.world.IsMain() {
		fmt.Fprintf(t.out, format, args...)
	}
}

// label returns what begins the lines of this training run's progress, so that those of others can
// be told apart: its name, if the program has chosen it or has several training runs.
func (t *Trainer) label() string {
	if t.isNamed || names.several() {
		return t.config.Name + ": "
	}
	return ""
}

// names gives the training runs of a program their default names.
var names = &namer{used: map[string]int{}}

type namer struct {
	mu    sync.Mutex
	used  map[string]int
	total int // Training runs, those with chosen names included.
}

// add counts a training run, and returns its name: the chosen one, or one by default.
func (n *namer) add(chosen, base string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.total++
	if chosen != "" {
		return chosen
	}
	n.used[base]++
	if i := n.used[base]; i > 1 {
		return fmt.Sprintf("%s-%d", base, i)
	}
	return base
}

// several reports whether the program has several training runs.
func (n *namer) several() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.total > 1
}

// checkWorld compares the world with the one that the configuration requires.
func checkWorld(c Config, w *distributed.World, env environment) error {
	is := "single"
	switch {
	case w.Size() > 1:
		is = "ddp"
	case w.Devices() > 1:
		is = "spmd"
	}
	if err := checkModelParallel(c, w); err != nil {
		return err
	}
	fits := c.Strategy == "auto" || c.Strategy == is || c.Strategy == step.Zero1 && is != "spmd"
	if !fits {
		return fmt.Errorf("strategy: %q, but this is %s: start it accordingly (ddp and zero1: submit --nodes or --tasks; spmd: one task, all devices; single: one task, %s=1)", c.Strategy, w, rundir.EnvDevices)
	}
	if c.Deterministic && w.Platform() != "cpu" && !strings.Contains(env.getenv("XLA_FLAGS"), "--xla_gpu_deterministic_ops=true") {
		return fmt.Errorf("deterministic: XLA on a GPU needs an option for it before the program starts: submit --env XLA_FLAGS=--xla_gpu_deterministic_ops=true")
	}
	return nil
}

// fitDevices lets a world use fewer devices for a batch that they can't share. Devices that have
// parts of the weights stay.
func fitDevices(c Config, w *distributed.World) error {
	if c.ModelParallel > 1 {
		return nil
	}
	return w.FitDevices(c.BatchSize)
}

// checkModelParallel compares the option with the strategy and the world.
func checkModelParallel(c Config, w *distributed.World) error {
	if c.ModelParallel <= 1 {
		return nil
	}
	if c.Strategy != "auto" && c.Strategy != "spmd" {
		return fmt.Errorf("model_parallel: %d with strategy %q: only spmd, several devices of one process, divides weights: leave one of the two out", c.ModelParallel, c.Strategy)
	}
	if err := w.CheckModelParallel(c.ModelParallel); err != nil {
		return fmt.Errorf("model_parallel: %w", err)
	}
	return nil
}
