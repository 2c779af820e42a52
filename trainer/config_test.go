package trainer_test

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/gomlx/ml/train/loss"
	"github.com/gomlx/gomlx/ml/train/metric"

	"gonbatch/checkpoint"
	"gonbatch/distributed/ranktest"
	"gonbatch/trainer"
)

func TestConfigSources(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trainer.yaml")
	yaml := "max_epochs: 3\nbatch_size: 12\nlog_every: 7\nschedule: {kind: step, step_size: 5}\ncheckpoint: {off: true, every: 10m}\n"
	if err := os.WriteFile(file, []byte(yaml), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRAINER_LOG_EVERY", "8")
	t.Setenv("TRAINER_BATCH_SIZE", "24")
	t.Setenv("TRAINER_SEED", "010") // As seq -w writes it.
	c := trainer.Config{MaxEpochs: 1, Seed: 9, EvalBatchSize: 50}
	flags := flag.NewFlagSet("notebook", flag.ContinueOnError)
	c.AddFlags(flags)
	if err := flags.Parse([]string{"-config", file, "-batch_size", "36", "-loggers", "csv,tensorboard", "-schedule.milestones", "1,2"}); err != nil {
		t.Fatal(err)
	}
	tr, _ := newTrainer(t, c, blobTask(plainNet))
	got := tr.Config()
	if got.BatchSize != 36 || got.LogEvery != 8 || got.MaxEpochs != 3 || got.Seed != 10 || got.EvalBatchSize != 50 {
		t.Errorf("flags, then the environment, the file, the program: got %+v", got)
	}
	if got.Schedule.Kind != "step" || got.Schedule.StepSize != 5 || got.Checkpoint.Every != 10*time.Minute || len(got.Loggers) != 2 || len(got.Schedule.Milestones) != 2 {
		t.Errorf("nested values, lists and times: got %+v", got)
	}
	if got.AccumulateGradBatches != 1 || got.Precision != "32-true" {
		t.Errorf("defaults: got %+v", got)
	}
}

// TestStrategySources: flags and the environment require each strategy that fits the world. Flags
// come first.
func TestStrategySources(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		fitting := []string{"auto", "single", "zero1"}
		if world(t).Size() > 1 {
			fitting = []string{"auto", "ddp", "zero1"}
		} else if world(t).Devices() > 1 {
			fitting = []string{"auto", "spmd"}
		}
		for _, strategy := range fitting {
			for _, source := range []struct {
				variable string
				flags    []string
			}{{strategy, nil}, {"", []string{"-strategy", strategy}}, {"none of them", []string{"-strategy", strategy}}} {
				t.Setenv("TRAINER_STRATEGY", source.variable)
				var c trainer.Config
				flags := flag.NewFlagSet("notebook", flag.ContinueOnError)
				c.AddFlags(flags)
				if err := flags.Parse(source.flags); err != nil {
					t.Fatal(err)
				}
				tr, _ := newTrainer(t, c, blobTask(plainNet))
				if got := tr.Config().Strategy; got != strategy {
					t.Errorf("%+v: the strategy is %q, want %q", source, got, strategy)
				}
			}
		}
	})
}

// TestTrueByDefault: all sources can turn off what is on by default, and the program's own values
// stay as they are.
func TestTrueByDefault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trainer.yaml")
	if err := os.WriteFile(file, []byte("shuffle: false\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	on, off := new(true), new(false)
	tests := []struct {
		name              string
		config            trainer.Config
		variable          string
		flags             []string
		shuffle, dropLast bool
	}{
		{"default", trainer.Config{}, "", nil, true, true},
		{"program", trainer.Config{Shuffle: off, DropLast: off}, "", nil, false, false},
		{"file", trainer.Config{Shuffle: on, DropLast: off}, "", []string{"-config", file}, false, false},
		{"file and a default", trainer.Config{}, "", []string{"-config", file}, false, true},
		{"environment", trainer.Config{}, "false", []string{"-config", file}, false, true},
		{"flags", trainer.Config{Shuffle: off}, "false", []string{"-shuffle", "-drop_last=false"}, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TRAINER_SHUFFLE", tt.variable)
			flags := flag.NewFlagSet("notebook", flag.ContinueOnError)
			tt.config.AddFlags(flags)
			if err := flags.Parse(tt.flags); err != nil {
				t.Fatal(err)
			}
			tr, _ := newTrainer(t, tt.config, blobTask(plainNet))
			if got := tr.Config(); *got.Shuffle != tt.shuffle || *got.DropLast != tt.dropLast {
				t.Errorf("shuffle %v, drop_last %v", *got.Shuffle, *got.DropLast)
			}
			if !*on || *off {
				t.Error("the program's values have changed")
			}
		})
	}
}

func TestConfigErrors(t *testing.T) {
	tests := []struct {
		name string
		c    trainer.Config
		env  string
		want string
	}{
		{"no name of a folder", trainer.Config{Name: ".."}, "", `name: "..": it names the training's folder of checkpoints`},
		{"no name of a folder, by a variable", trainer.Config{}, "TRAINER_NAME=.", `name: "."`},
		{"negative", trainer.Config{MaxSteps: -1}, "", "max_steps: -1"},
		{"no batch", trainer.Config{BatchSize: -4}, "", "batch_size: -4: it must be at least 1"},
		{"clip", trainer.Config{GradientClipNorm: -1}, "", "gradient_clip_norm: -1"},
		{"clip by value", trainer.Config{GradientClipValue: math.NaN()}, "", "gradient_clip_value: NaN"},
		{"minimum of epochs", trainer.Config{MaxEpochs: 3, MinEpochs: 4}, "", "min_epochs: 4, but max_epochs is 3"},
		{"minimum of updates", trainer.Config{MaxSteps: 3, MinSteps: 4}, "", "min_steps: 4, but max_steps is 3"},
		{"two intervals", trainer.Config{ValCheckInterval: 5, CheckValEveryNEpoch: 2}, "", "check_val_every_n_epoch: 2, and val_check_interval: 5"},
		{"threshold of nothing", trainer.Config{}, "TRAINER_EARLY_STOPPING_STOPPING_THRESHOLD=0", "early_stopping.monitor is empty"},
		{"threshold", trainer.Config{}, "TRAINER_EARLY_STOPPING_STOPPING_THRESHOLD=low", `"low": it is not a number`},
		{"compression", trainer.Config{GradientCompression: "fp16"}, "", `gradient_compression: "fp16": it must be none or bf16`},
		{"compression of float64", trainer.Config{GradientCompression: "bf16", Precision: "64-true"}, "", "gradient_compression: bf16 with precision 64-true"},
		{"precision", trainer.Config{Precision: "16"}, "", `precision: "16": it must be 32-true, bf16-mixed, 16-mixed, bf16-true or 64-true`},
		{"strategy", trainer.Config{Strategy: "fsdp"}, "", `strategy: "fsdp": it must be auto, single, spmd, ddp or zero1`},
		{"another world", trainer.Config{Strategy: "ddp"}, "", `strategy: "ddp", but this is`},
		{"logger", trainer.Config{Loggers: []string{"wandb"}}, "", `loggers: "wandb"`},
		{"schedule", trainer.Config{Schedule: trainer.ScheduleConfig{Kind: "exp"}}, "", `schedule.kind: "exp": it must be constant, step, multistep, cosine, one-cycle or plateau`},
		{"step size", trainer.Config{Schedule: trainer.ScheduleConfig{Kind: "step"}}, "", "schedule.step_size: 0"},
		{"milestones", trainer.Config{Schedule: trainer.ScheduleConfig{Kind: "multistep", Milestones: []int{4, 2}}}, "", "schedule.milestones: [4 2]"},
		{"mode", trainer.Config{EarlyStopping: trainer.EarlyStoppingConfig{Monitor: "val/loss", Mode: "less"}}, "", `early_stopping.mode: "less": it must be min or max`},
		{"environment", trainer.Config{}, "TRAINER_MAX_EPOCHS=ten", `TRAINER_MAX_EPOCHS="ten": it is not a whole number`},
		{"neither true nor false", trainer.Config{}, "TRAINER_SHUFFLE=maybe", `TRAINER_SHUFFLE="maybe": it is neither true nor false`},
		{"no file", trainer.Config{}, "TRAINER_CONFIG=/nowhere/t.yaml", "/nowhere/t.yaml"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if name, value, ok := strings.Cut(test.env, "="); ok {
				t.Setenv(name, value)
			}
			_, err := trainer.New(world(t), test.c, blobTask(plainNet))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestConfigFileErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"an unknown key":    {"max_epochs: 3\nmax_epoch: 4\n", []string{"line 2: there is no setting max_epoch: did you mean max_epochs?"}},
		"a nested one":      {"checkpoint:\n  keep: 3\n  evry: 1m\n", []string{"line 3: there is no setting checkpoint.evry: did you mean checkpoint.every?"}},
		"a mapping less":    {"keep: 3\n", []string{"line 1: there is no setting keep"}},
		"a name with a dot": {"log_every: 3\ncheckpoint.keep: 3\n", []string{"line 2: write checkpoint.keep as checkpoint: {keep: ...}"}},
		"beside a merge":    {"<<: {max_epochs: 3}\ncheckpoint: {<<: {keep: 3}, evry: 1m}\n", []string{"there is no setting checkpoint.evry: did you mean checkpoint.every?"}},
		"in a merge":        {"<<: {max_epoch: 3}\n", []string{"line 1", "max_epoch"}},
		"a fraction":        {"limit_train_batches: 0.5\n", []string{"limit_train_batches: 0.5: it is not a whole number"}},
		"fractions":         {"schedule: {kind: multistep, milestones: [0.5, 0.75]}\n", []string{`line 1: schedule.milestones: 0.5,0.75: "0.5" is not a whole number`}},
		"no time":           {"checkpoint: {every: 90}\n", []string{"checkpoint.every: 90: it is not a time such as 90s"}},
		"no list":           {"loggers: csv\n", []string{"loggers: csv: it must be a list: [csv]"}},
		"a list":            {"max_epochs: [1]\n", []string{"line 1: max_epochs: it is a list: write one value"}},
		"a group's name":    {"schedule: cosine\n", []string{"line 1: schedule: cosine: it is a group of settings: write schedule: {NAME: VALUE}"}},
		"a list in a list":  {"loggers:\n  - csv\n  - [none]\n", []string{"line 2: loggers: the element on line 3 is no single value"}},
		"below 0":           {"seed: -1\n", []string{"seed: -1: it is not a whole number of at least 0"}},
		"a second document": {"max_epochs: 3\n---\nmax_epochs: 4\n", []string{"line 3", "a second document"}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "trainer.yaml")
			if err := os.WriteFile(file, []byte(test.text), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TRAINER_CONFIG", file)
			_, err := trainer.New(world(t), trainer.Config{}, blobTask(plainNet))
			for _, want := range append(test.want, file) {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// TestConfigFileNumbers: YAML's other ways to write numbers and booleans.
func TestConfigFileNumbers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trainer.yaml")
	text := "max_steps: &n 1e6\nmax_epochs: *n\nshuffle: no\ndrop_last: off\nseed: 1e9\nbatch_size: 010\nlog_every: 0x20\ncheckpoint: {off: yes, keep: 1_0}\nschedule: {kind: multistep, milestones: [20, 1e3]}\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TRAINER_CONFIG", file)
	tr, err := trainer.New(world(t), trainer.Config{}, blobTask(plainNet))
	if err != nil {
		t.Fatal(err)
	}
	c := tr.Config()
	got := fmt.Sprint(c.MaxSteps, c.MaxEpochs, *c.Shuffle, *c.DropLast, c.Seed, c.BatchSize, c.LogEvery, c.Checkpoint.Off, c.Checkpoint.Keep, c.Schedule.Milestones)
	if want := "1000000 1000000 false false 1000000000 10 32 true 10 [20 1000]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFlagErrors(t *testing.T) {
	flags := flag.NewFlagSet("notebook", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	new(trainer.Config).AddFlags(flags)
	if err := flags.Parse([]string{"-max_time", "soon"}); err == nil || !strings.Contains(err.Error(), "-max_time") || !strings.Contains(err.Error(), "90s, 30m") {
		t.Errorf("got %v, want the flag and an example", err)
	}
}

// TestFlagsAfterAWord: package flag would ignore them.
func TestFlagsAfterAWord(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-shuffle", "false", "-max_epochs", "5"}, `warning: the argument -max_epochs doesn't count: "false" before it is no flag`},
		{[]string{"-max_epochs", "5", "rest", "-x", "-3"}, ""},
	} {
		flags := flag.NewFlagSet("notebook", flag.ContinueOnError)
		var config trainer.Config
		config.AddFlags(flags)
		if err := flags.Parse(tt.args); err != nil {
			t.Fatal(err)
		}
		_, out := newTrainer(t, config, blobTask(plainNet))
		if said := strings.Contains(out.String(), "warning: "); said != (tt.want != "") || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%q: it says %q, want %q", tt.args, out, tt.want)
		}
	}
}

// TestMisspelledVariable: a variable whose name is nearly that of a setting sets nothing, and says
// so.
func TestMisspelledVariable(t *testing.T) {
	t.Setenv("TRAINER_MAX_EPOCH", "9")
	t.Setenv("TRAINER_OF_THE_YEAR", "Ann")
	_, out := newTrainer(t, trainer.Config{}, blobTask(plainNet))
	if want := "warning: the variable TRAINER_MAX_EPOCH sets nothing; is TRAINER_MAX_EPOCHS meant?"; !strings.Contains(out.String(), want) || strings.Contains(out.String(), "YEAR") {
		t.Errorf("it says %q, want %q", out, want)
	}
}

func withMetrics(names ...string) trainer.Task {
	var all []metric.Interface
	for _, name := range names {
		all = append(all, metric.NewMeanMetric(name, "", "", nil, nil))
	}
	return trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, plainSGD(1), all...)
}

// TestScopesBeside: scopes whose names begin with the same text are not inside one another.
func TestScopesBeside(t *testing.T) {
	if _, err := trainer.New(world(t), trainer.Config{}, trainer.Adversarial(pullApart, objective("a", "/a"), objective("ab", "/ab"))); err != nil {
		t.Error(err)
	}
}

// TestCheckpointDir: the configuration has the folder that is used.
func TestCheckpointDir(t *testing.T) {
	run := t.TempDir()
	t.Setenv("GONBATCH_RUN_DIR", run)
	t.Setenv("GONBATCH_CELL", "train")
	mine := t.TempDir()
	for _, test := range []struct {
		name string
		c    trainer.Config
		want string
	}{
		{"by the step's name", trainer.Config{}, filepath.Join(run, "checkpoints", "train")},
		{"by a name", trainer.Config{Name: "fold/1"}, filepath.Join(run, "checkpoints", "fold_1")},
		{"given", trainer.Config{Checkpoint: trainer.CheckpointConfig{Dir: mine}}, mine},
		{"off", trainer.Config{Checkpoint: trainer.CheckpointConfig{Off: true}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.c.BatchSize, test.c.Loggers = 12, []string{"none"}
			tr, _ := newTrainer(t, test.c, blobTask(plainNet))
			if got := tr.Config().Checkpoint.Dir; got != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			if err := tr.Fit(t.Context(), ranktest.Blobs(24), nil); err != nil {
				t.Fatal(err)
			}
			if all, err := checkpoint.List(test.want); test.want != "" && (err != nil || len(all) != 1 || filepath.Dir(all[0].Path) != test.want) {
				t.Errorf("%v, %v: there is no checkpoint in it", all, err)
			}
		})
	}
	t.Setenv("GONBATCH_RUN_DIR", "")
	tr, _ := newTrainer(t, trainer.Config{}, blobTask(plainNet))
	if got := tr.Config().Checkpoint.Dir; got != "" {
		t.Errorf("outside of a run directory it is %q", got)
	}
}

func TestTaskErrors(t *testing.T) {
	tests := []struct {
		name string
		task trainer.Task
		want string
	}{
		{"empty", trainer.Task{}, "without a model or a loss"},
		{"no optimizer", trainer.Supervised(plainNet, nil, nil), "without a model or a loss"},
		{"no objectives", trainer.Adversarial(pullApart), "without objectives"},
		{"the same scope", trainer.Adversarial(pullApart, objective("a", "/a"), objective("b", "/a")), `two objectives have the scope "/a"`},
		{"a scope in another", trainer.Adversarial(pullApart, objective("all", "/"), objective("head", "/head")), `the scope "/head" of the objective "head" lies in "/" of "all"`},
		{"a scope in a later one", trainer.Adversarial(pullApart, objective("head", "/a/head"), objective("a", "/a")), `the scope "/a/head" of the objective "head" lies in "/a" of "a"`},
		{"a scope that ends with a slash", trainer.Adversarial(pullApart, objective("a", "/a/"), objective("b", "/b")), "must be a path"},
		{"the same name", trainer.Adversarial(pullApart, objective("Gen", "/a"), objective("gen", "/b")), `the loss of the objective "Gen" and the loss of the objective "gen" are both logged as "val/gen_loss"`},
		{"metrics of one name", withMetrics("Mean Hits", "batch hits"), `the metric "Mean Hits" and the metric "batch hits" are both logged as "val/hits"`},
		{"a metric named as the loss", withMetrics("Loss"), `the loss and the metric "Loss" are both logged as "val/loss"`},
		{"a metric without a name", withMetrics("Mean"), `the metric "Mean" can't be logged by its name`},
		{"a metric of the last batch", trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, plainSGD(1), metric.NewBaseMetric("Hits", "", "", nil, nil)),
			"covers only the last batch, not the whole dataset: use metric.NewMeanMetric"},
		{"a moving average", trainer.Supervised(plainNet, loss.SparseCategoricalCrossEntropyLogits, plainSGD(1), metric.NewExponentialMovingAverageMetric("Hits", "", "", nil, nil, 0.1)),
			"is a moving average"},
		{"no scope", trainer.Adversarial(pullApart, objective("a", "")), "must be a path"},
		{"no name", trainer.Adversarial(pullApart, objective("", "/a"), objective("b", "/b")), "has no name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if _, err := trainer.New(world(t), trainer.Config{}, test.task); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
