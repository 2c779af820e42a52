package trainer

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/trainer/internal/profile"
	"gonbatch/trainer/internal/saved"
	"gonbatch/trainer/internal/step"
)

// Config says how to train. The zero value of each field is a sensible default, but a zero that a
// flag, the environment or a file gives is taken literally. YAML keys and flags have Lightning's
// names if Lightning has the option.
type Config struct {
	// Name distinguishes the training runs of a program, in the run directory and in messages:
	// lines of progress begin with it if it is set, or if the program has several training runs.
	// The default is the name of the cell if it runs as a job, or "main"; further training runs get
	// the suffix "-2" and so on.
	Name string `yaml:"name" help:"name of this training run, for a program with several"`

	// MaxEpochs is the number of passes over the training set. If no limit is set, it is 1.
	MaxEpochs int `yaml:"max_epochs" help:"passes over the training set (default: 1 if no limit is set)"`
	// MaxSteps ends the training after this many updates of the weights.
	MaxSteps int `yaml:"max_steps" help:"stop after this many updates of the weights (0: no limit)"`
	// MaxTime ends the training after this much time, restarts included.
	MaxTime time.Duration `yaml:"max_time" help:"stop after this much time, such as 90m, restarts included (0: no limit)"`

	// Early stopping waits for at least MinEpochs epochs and MinSteps updates. Other limits don't.
	MinEpochs int `yaml:"min_epochs" help:"least number of epochs before early stopping may end the training (0: none)"`
	MinSteps  int `yaml:"min_steps" help:"least number of updates before early stopping may end the training (0: none)"`

	// BatchSize is the number of examples in a training batch, over all ranks and devices. Default:
	// 64.
	BatchSize int `yaml:"batch_size" help:"examples in a training batch, over all ranks and devices (default: 64)"`
	// Shuffle draws a new order of the examples for each epoch. Default: true; new(false) keeps the
	// dataset's order.
	Shuffle *bool `yaml:"shuffle" help:"draw a new order of the examples for each epoch (default: true)"`
	// DropLast leaves out the examples that don't fill the last batch of an epoch. Default: true;
	// with new(false) they are used, and the batch is filled up with the first examples of the
	// epoch.
	DropLast *bool `yaml:"drop_last" help:"leave out the examples that don't fill the last batch of an epoch, instead of filling it with the epoch's first ones (default: true)"`
	// EvalBatchSize is the number of examples that a rank evaluates at once. Default: 1,000.
	EvalBatchSize int `yaml:"eval_batch_size" help:"examples that a rank evaluates at once (default: 1000)"`
	// AccumulateGradBatches is the number of batches whose gradients are averaged for one update.
	// Default: 1.
	AccumulateGradBatches int `yaml:"accumulate_grad_batches" help:"batches averaged for one update of the weights (default: 1)"`
	// LimitTrainBatches limits the batches of each epoch.
	LimitTrainBatches int `yaml:"limit_train_batches" help:"maximum number of batches in an epoch (0: all)"`
	// LimitValBatches limits the batches of each validation, on each rank. A batch has
	// EvalBatchSize examples.
	LimitValBatches int `yaml:"limit_val_batches" help:"maximum number of batches of a rank in a validation (0: all)"`
	// LimitTestBatches is LimitValBatches for tests.
	LimitTestBatches int `yaml:"limit_test_batches" help:"maximum number of batches of a rank in a test (0: all)"`
	// LimitPredictBatches is LimitValBatches for predictions and confusion matrices.
	LimitPredictBatches int `yaml:"limit_predict_batches" help:"maximum number of batches of a rank in a prediction (0: all)"`
	// ValCheckInterval is the number of updates between validations. Default: one validation at the
	// end of each epoch.
	ValCheckInterval int `yaml:"val_check_interval" help:"updates between validations (0: at the end of each epoch)"`
	// CheckValEveryNEpoch is the number of epochs between validations, if there is no
	// ValCheckInterval. Early stopping, the best checkpoint and the schedule "plateau" look at
	// their metrics only then. Default: 1.
	CheckValEveryNEpoch int `yaml:"check_val_every_n_epoch" help:"epochs between validations (default: 1)"`
	// OverfitBatches trains on this many batches only, in the same order in each epoch. A model
	// that can't learn them has a bug.
	OverfitBatches int `yaml:"overfit_batches" help:"train on this many batches only, to find bugs (0: off)"`
	// FastDevRun trains one batch, and validates, tests and predicts one on each rank, without
	// checkpoints, to check that everything runs.
	FastDevRun bool `yaml:"fast_dev_run" help:"train, validate, test and predict one batch, without checkpoints, to check that everything runs"`

	// GradientClipNorm scales the gradients of an objective down if their global norm is larger
	// (Pascanu et al., On the difficulty of training recurrent neural networks, 2013). Default: no
	// clipping.
	GradientClipNorm float64 `yaml:"gradient_clip_norm" help:"maximum global norm of the gradients (0: no clipping)"`
	// GradientClipValue limits each element of the gradients to this size, before GradientClipNorm.
	// Default: no limit.
	GradientClipValue float64 `yaml:"gradient_clip_value" help:"maximum size of each element of the gradients (0: no limit)"`
	// GradientCompression is the type in which gradients travel between the ranks. With "bf16",
	// they take half the time on a slow network: each rank's gradients are rounded to bfloat16, and
	// so is their mean, which is computed in float32 (bf16_compress_hook in PyTorch). Default:
	// "none". With one rank, it makes no difference.
	GradientCompression string `yaml:"gradient_compression" help:"none, or bf16: gradients travel between the ranks as bfloat16 (default: none)"`
	// EMADecay makes Fit compute exponential moving averages of the trained weights: after each
	// update, an average keeps this part of itself, and the rest comes from the weight. LoadAverage
	// gives them to the model, after Fit; validations during Fit use the weights themselves.
	// Statistics of batch normalization are not averaged, and Float16 weights are refused: they are
	// too coarse for averages. Default: 0, no averages.
	EMADecay float64 `yaml:"ema_decay" help:"decay of the moving averages of the weights, such as 0.999, for LoadAverage (0: none)"`
	// LocalBatchNorm makes each rank normalize its own part of a batch in cnn.BatchNorm, as PyTorch
	// does without SyncBatchNorm. Default: all ranks normalize the whole batch, as a single one
	// does.
	LocalBatchNorm bool `yaml:"local_batch_norm" help:"batch normalization of each rank's own part of a batch, instead of the whole batch"`
	// Precision is the element type of inputs, weights and computation: "32-true", "bf16-true" or
	// "64-true". "bf16-mixed" and "16-mixed" compute in bfloat16 and float16, with weights and an
	// optimizer in float32. A model whose inputs are integers asks for the type with ComputeDType.
	// Losses and metrics are computed in at least float32. Default: "32-true".
	//
	// "16-mixed" scales the loss, so that small gradients don't vanish (Micikevicius et al., Mixed
	// Precision Training, 2018). If a gradient overflows on any rank, all skip the update, which
	// counts as a step, and the scale halves; after 2,000 updates without an overflow it doubles.
	// It begins with 65,536, and the training ends with a *DivergedError when it falls below
	// 0.0001. The metrics train/loss_scale and train/skipped_updates show it.
	Precision string `yaml:"precision" help:"32-true, bf16-mixed, 16-mixed, bf16-true or 64-true (default: 32-true)"`
	// Strategy is the required kind of world: "single" (one device), "spmd" (several devices of one
	// process) or "ddp" (several ranks). New fails if the world is of another kind. Default:
	// "auto", which accepts any.
	//
	// "zero1" is "ddp" with less memory: each rank updates its part of each weight, and keeps only
	// this part of the optimizer's state (Rajbhandari et al., ZeRO: Memory Optimizations Toward
	// Training Trillion Parameter Models, 2020, stage 1). The updates are the same, except for
	// rounding. It needs an optimizer that computes each element by itself: GoMLX's Adam, AdamW,
	// Adamax, RMSProp and SGD, or SGD. With one rank, it makes no difference.
	Strategy string `yaml:"strategy" help:"required strategy: auto, single, spmd, ddp, or zero1, which is ddp with the optimizer's state divided among the ranks (default: auto)"`
	// ModelParallel is the number of devices among which each large weight is divided, with its
	// gradient and the optimizer's state, so that a model can be trained that doesn't fit one
	// device. It must divide the number of devices of the process; each group of so many devices
	// has its own part of a batch. Divide chooses the axes. Default: 1; each device has whole
	// weights. With several ranks, New fails: a rank drives one device.
	ModelParallel int `yaml:"model_parallel" help:"devices of one process among which each large weight is divided (default: 1)"`
	// Seed determines the initial weights, the order of the examples and the model's random
	// numbers. All ranks must have the same seed.
	Seed uint64 `yaml:"seed" help:"seed of the initial weights, the order of the examples and the model's random numbers"`
	// Deterministic requires bit-identical results from the same seed. A CPU always gives them. A
	// GPU needs an option of XLA, which New's error names.
	Deterministic bool `yaml:"deterministic" help:"require bit-identical results from the same seed"`

	// LogEvery is the number of updates between reports. Default: 50. A flag's 0 means a report at
	// the end of each epoch only.
	LogEvery int `yaml:"log_every" help:"updates between reports (default: 50; 0: at the end of each epoch)"`
	// LogHistogramsEvery is the number of updates between histograms of each weight and its
	// gradient, which TensorBoard shows. A histogram costs a copy off the device. Default: none.
	LogHistogramsEvery int `yaml:"log_histograms_every" help:"updates between histograms of weights and gradients (0: none)"`
	// Loggers lists the loggers to use besides metrics.jsonl: "csv", "tensorboard", "mlflow",
	// "curves". Use "none" for no other logger. Default: all, but mlflow only if
	// MLFLOW_TRACKING_URI is set.
	Loggers []string `yaml:"loggers" help:"csv, tensorboard, mlflow, curves, or none (default: all; mlflow only if MLFLOW_TRACKING_URI is set)"`

	Loader        LoaderConfig        `yaml:"loader"`
	Schedule      ScheduleConfig      `yaml:"schedule"`
	EarlyStopping EarlyStoppingConfig `yaml:"early_stopping"`
	Checkpoint    CheckpointConfig    `yaml:"checkpoint"`
	Profile       ProfileConfig       `yaml:"profile"`

	sources        *sources
	phase          int             // How many phases came before this one; see NextPhase.
	ofPhase        map[string]bool // The fields that the program has changed for this phase.
	warnings       []string        // About settings that don't count: see resolved.
	monitorImplied bool            // Checkpoint.Monitor is the default.
	chosen         map[string]bool // The fields that don't have a default's value, by name.
}

// LoaderConfig says how batches are loaded ahead of the steps that use them, for training runs,
// validations, tests and predictions. It changes neither the examples of a batch nor their order.
type LoaderConfig struct {
	// Workers is the number of batches that a rank loads at once, while the device computes.
	// Default: one for each of its cores, at most 4. -1, or a flag's 0, is none: then a step waits
	// until its batch is loaded.
	Workers int `yaml:"workers" help:"batches that a rank loads at once, ahead of the steps (default: one for each core, at most 4; 0: none ahead)"`
	// Prefetch is the number of batches that are loaded, or being loaded, ahead of the step; it is
	// at least Workers. Those of a validation, a test or a prediction are also limited to 512 MB,
	// or one batch. Default: 2.
	Prefetch int `yaml:"prefetch" help:"batches that are loaded ahead of the step, on the device; at least as many as workers (default: 2)"`
}

// EarlyStoppingConfig ends a training run that no longer improves.
type EarlyStoppingConfig struct {
	// Monitor is the metric that must improve, such as "val/loss" or "train/loss". If it is empty,
	// there is no early stopping.
	Monitor string `yaml:"monitor" help:"metric that must improve, such as val/loss (empty: no early stopping)"`
	// Mode is "min" or "max". It may be empty for well-known metrics: min for losses, errors and
	// perplexity; max for accuracy, F1, IoU, BLEU and the like.
	Mode string `yaml:"mode" help:"min or max (default: by the metric's name, where it is well known)"`
	// Patience is the number of validations without improvement before the training stops. Default:
	// 3. A flag's 0 means 1.
	Patience int `yaml:"patience" help:"validations without improvement before stopping (default: 3)"`
	// MinDelta is the smallest change that counts as an improvement.
	MinDelta float64 `yaml:"min_delta" help:"smallest change that counts as an improvement"`
	// StoppingThreshold is a value of the metric that is good enough: the training ends at the
	// first validation that reaches it. Default: none; new(0.99) in a program sets it.
	StoppingThreshold *float64 `yaml:"stopping_threshold" help:"value of the metric that ends the training at once (default: none)"`
}

// CheckpointConfig says when to write checkpoints, and which to keep. One is also written at the
// end, and when the job is told to stop.
type CheckpointConfig struct {
	// Dir is the folder of checkpoints. Each checkpoint is a folder step-N in it. Default: in a
	// run, checkpoints/NAME in the run directory, where NAME is Config.Name; in the kernel, a
	// folder in the user's cache that belongs to the code of the cell and everything it calls.
	// Elsewhere no checkpoints are written.
	Dir string `yaml:"dir" help:"folder of checkpoints (default: in the run directory)"`
	// EverySteps is the number of updates between checkpoints. Default: one checkpoint at the end
	// of each epoch.
	EverySteps int `yaml:"every_steps" help:"updates between checkpoints (0: see checkpoint.every_epochs)"`
	// EveryEpochs is the number of epochs between checkpoints. It may be combined with EverySteps
	// and Every. A checkpoint that is the best by Monitor is written too. Default: 1, unless one of
	// these two is set.
	EveryEpochs int `yaml:"every_epochs" help:"epochs between checkpoints (default: 1, unless checkpoint.every_steps or checkpoint.every is set)"`
	// Every is the time between checkpoints, by rank 0's clock.
	Every time.Duration `yaml:"every" help:"time between checkpoints, such as 10m (0: off)"`
	// Keep is the number of newest checkpoints to keep. Default: 2.
	Keep int `yaml:"keep" help:"number of newest checkpoints to keep (default: 2)"`
	// Monitor is the metric whose best checkpoint is also kept. Default: val/loss, if there is a
	// validation. A flag's empty value means none.
	Monitor string `yaml:"monitor" help:"metric whose best checkpoint is also kept (default: val/loss; empty: none)"`
	// Mode is "min" or "max". Default: as for EarlyStoppingConfig.
	Mode string `yaml:"mode" help:"min or max (default: by the metric's name, where it is well known)"`
	// Resume says whether to resume from the newest valid checkpoint in the folder. "auto" resumes
	// if there is one. "must" fails if there is none. "never" starts over and moves the folder's
	// contents aside (but a restart of the same job still resumes its own training). Default:
	// "auto".
	Resume string `yaml:"resume" help:"resume from the folder's newest checkpoint: auto, never or must (default: auto)"`
	// Off turns checkpoints off.
	Off bool `yaml:"off" help:"write no checkpoints"`
}

// defaults maps the names of fields to the values they get if they are zero.
var defaults = map[string]any{
	"batch_size": 64, "eval_batch_size": 1000, "accumulate_grad_batches": 1, "loader.prefetch": 2, "log_every": 50, "early_stopping.patience": 3, "checkpoint.keep": 2,
	"check_val_every_n_epoch": 1, "model_parallel": 1, "precision": "32-true", "strategy": "auto", "gradient_compression": noCompression, "checkpoint.resume": "auto", "checkpoint.monitor": "val/loss", "schedule.kind": "constant",
}

// setDefaults gives zero fields their defaults, except those that a source has set to zero. In the
// program's own Config, a zero can't be distinguished from a missing field.
func (c *Config) setDefaults(given map[string]bool) {
	if c.MaxEpochs == 0 && c.MaxSteps == 0 && c.MaxTime == 0 && !given["max_epochs"] {
		c.MaxEpochs = 1
	}
	c.monitorImplied = c.monitorImplied || c.Checkpoint.Monitor == ""
	fields := c.fields()
	set := func(name string, value any) {
		if f := fields[name].value; f.IsZero() && !given[name] {
			f.Set(reflect.ValueOf(value))
		}
	}
	for name, value := range defaults {
		set(name, value)
	}
	set("shuffle", new(true))
	set("drop_last", new(true))
	for name, value := range scheduleDefaults[c.Schedule.Kind] {
		set("schedule."+name, value)
	}
	if c.Loader.Workers == 0 && given["loader.workers"] {
		c.Loader.Workers = -1
	}
	if c.Schedule.Mode == "" {
		c.Schedule.Mode = modeOf(c.Schedule.Monitor)
	}
	if c.EarlyStopping.Mode == "" {
		c.EarlyStopping.Mode = modeOf(c.EarlyStopping.Monitor)
	}
	if c.Checkpoint.Mode == "" {
		c.Checkpoint.Mode = modeOf(c.Checkpoint.Monitor)
	}
	if c.FastDevRun {
		c.Schedule.WarmupSteps = 0
		c.MaxEpochs, c.MaxSteps, c.LimitTrainBatches = 1, 0, c.AccumulateGradBatches
		c.LimitValBatches, c.LimitTestBatches, c.LimitPredictBatches = 1, 1, 1
		c.MinEpochs, c.MinSteps, c.CheckValEveryNEpoch = 0, 0, 1
		c.ValCheckInterval, c.Checkpoint.Off, c.Loggers = 0, true, []string{"none"}
	}
}

// check returns an error for values that make no sense.
func (c *Config) check() error {
	for name, value := range map[string]int{
		"max_epochs": c.MaxEpochs, "max_steps": c.MaxSteps, "min_epochs": c.MinEpochs, "min_steps": c.MinSteps, "limit_train_batches": c.LimitTrainBatches, "limit_val_batches": c.LimitValBatches,
		"limit_test_batches": c.LimitTestBatches, "limit_predict_batches": c.LimitPredictBatches,
		"val_check_interval": c.ValCheckInterval, "overfit_batches": c.OverfitBatches, "log_histograms_every": c.LogHistogramsEvery,
		"checkpoint.every_steps": c.Checkpoint.EverySteps, "checkpoint.every_epochs": c.Checkpoint.EveryEpochs, "log_every": c.LogEvery, "early_stopping.patience": c.EarlyStopping.Patience,
	} {
		if value < 0 {
			return fmt.Errorf("%s: %d: it can't be negative", name, value)
		}
	}
	if _, _, err := profile.Limits(c.Profile.Steps); err != nil {
		return err
	}
	for name, value := range map[string]int{
		"batch_size": c.BatchSize, "eval_batch_size": c.EvalBatchSize, "accumulate_grad_batches": c.AccumulateGradBatches,
		"check_val_every_n_epoch": c.CheckValEveryNEpoch, "model_parallel": c.ModelParallel, "checkpoint.keep": c.Checkpoint.Keep, "loader.prefetch": c.Loader.Prefetch,
	} {
		if value < 1 {
			return fmt.Errorf("%s: %d: it must be at least 1", name, value)
		}
	}
	switch {
	case c.Name == "." || c.Name == "..":
		return fmt.Errorf("name: %q: it names the training's folder of checkpoints, so use a word", c.Name)
	case c.MaxEpochs == 0 && c.MaxSteps == 0 && c.MaxTime == 0:
		return errors.New("max_epochs is 0 (no limit) and no other limit is set: set max_epochs, max_steps or max_time")
	case c.Loader.Workers < -1:
		return fmt.Errorf("loader.workers: %d: it must be at least 1, or -1 for none", c.Loader.Workers)
	case c.MaxTime < 0:
		return fmt.Errorf("max_time: %s: it can't be negative", c.MaxTime)
	case c.Checkpoint.Every < 0:
		return fmt.Errorf("checkpoint.every: %s: it can't be negative", c.Checkpoint.Every)
	case !(c.GradientClipNorm >= 0):
		return fmt.Errorf("gradient_clip_norm: %g: it can't be negative", c.GradientClipNorm)
	case !(c.GradientClipValue >= 0):
		return fmt.Errorf("gradient_clip_value: %g: it can't be negative", c.GradientClipValue)
	case c.MaxEpochs > 0 && c.MinEpochs > c.MaxEpochs:
		return fmt.Errorf("min_epochs: %d, but max_epochs is %d: raise max_epochs or lower min_epochs", c.MinEpochs, c.MaxEpochs)
	case c.MaxSteps > 0 && c.MinSteps > c.MaxSteps:
		return fmt.Errorf("min_steps: %d, but max_steps is %d: raise max_steps or lower min_steps", c.MinSteps, c.MaxSteps)
	case c.ValCheckInterval > 0 && c.CheckValEveryNEpoch > 1:
		return fmt.Errorf("check_val_every_n_epoch: %d, and val_check_interval: %d: set only one of them", c.CheckValEveryNEpoch, c.ValCheckInterval)
	case !(c.EMADecay >= 0 && c.EMADecay < 1):
		return fmt.Errorf("ema_decay: %g: it must be from 0 to less than 1", c.EMADecay)
	case !(c.EarlyStopping.MinDelta >= 0):
		return fmt.Errorf("early_stopping.min_delta: %g: it can't be negative", c.EarlyStopping.MinDelta)
	case c.EarlyStopping.StoppingThreshold != nil && math.IsNaN(*c.EarlyStopping.StoppingThreshold):
		return errors.New("early_stopping.stopping_threshold: NaN: it must be a number")
	case c.EarlyStopping.StoppingThreshold != nil && c.EarlyStopping.Monitor == "":
		return errors.New("early_stopping.stopping_threshold: early_stopping.monitor is empty: set it to the metric that must reach the threshold")
	case c.GradientCompression == bf16Compression && c.Precision == "64-true":
		return fmt.Errorf("gradient_compression: %s with precision %s: it would keep 8 of 53 bits of each gradient: leave one of the two out", bf16Compression, c.Precision)
	case c.EarlyStopping.Monitor != "" && c.EarlyStopping.Mode == "":
		return unknownMode("early_stopping", c.EarlyStopping.Monitor)
	case !c.Checkpoint.Off && c.Checkpoint.Monitor != "" && c.Checkpoint.Mode == "":
		return unknownMode("checkpoint", c.Checkpoint.Monitor)
	}
	for _, choice := range []struct {
		name, value string
		values      []string
	}{
		{"precision", c.Precision, step.Precisions},
		{"gradient_compression", c.GradientCompression, []string{noCompression, bf16Compression}},
		{"strategy", c.Strategy, []string{"auto", "single", "spmd", "ddp", step.Zero1}},
		{"early_stopping.mode", c.EarlyStopping.Mode, []string{"", "min", "max"}},
		{"checkpoint.mode", c.Checkpoint.Mode, []string{"", "min", "max"}},
		{"checkpoint.resume", c.Checkpoint.Resume, []string{"auto", "never", "must"}},
	} {
		if err := oneOf(choice.name, choice.value, choice.values); err != nil {
			return err
		}
	}
	if c.Loggers != nil && len(c.Loggers) == 0 {
		return errors.New("loggers: the list is empty: use \"none\" for no loggers")
	}
	for _, name := range c.Loggers {
		if err := oneOf("loggers", name, []string{"csv", "tensorboard", "mlflow", "curves", "none"}); err != nil {
			return err
		}
	}
	return c.Schedule.check()
}

// checkpointDir returns the folder of checkpoints; empty if there is none.
func (c Config) checkpointDir(env rundir.Env) string {
	switch {
	case c.Checkpoint.Dir != "" || c.Checkpoint.Off:
		return c.Checkpoint.Dir
	case env.InRun():
		return filepath.Join(env.Dir.Checkpoints(), saved.FileName(c.Name))
	case env.Checkpoints != "":
		return filepath.Join(env.Checkpoints, saved.FileName(c.Name))
	}
	return ""
}

// The values of Config.GradientCompression.
const (
	noCompression   = "none"
	bf16Compression = "bf16"
)
