package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gonbatch/internal/proc"
	"gonbatch/internal/rundir"
)

// notebook is a notebook of the project: the kit has its main cell as a program.
type notebook struct {
	name string
	cell string
	args []string
	// every is the number of updates between checkpoints.
	every int
	// metric is at least this good at the end.
	metric string
	good   func(float64) bool
}

var notebooks = []notebook{
	{"mnist", "train", []string{"-epochs", "2"}, 200, "test/accuracy", func(v float64) bool { return v >= 0.98 }},
	{"gpt", "train", []string{"-max_steps", "300"}, 50, "val/loss", func(v float64) bool { return v <= 3 }},
}

// check is the name of the notebook's check.
func (n notebook) check() string { return "notebooks/" + n.name }

// dir is the run directory of a notebook's run.
func (b *bench) dir(n notebook, run string) rundir.Dir {
	return rundir.At(filepath.Join(b.temporary, n.name+"-"+run))
}

// train runs a notebook's program in a run directory, with further variables.
func (b *bench) train(ctx context.Context, n notebook, run string, env ...string) (said string, err error) {
	dir := b.dir(n, run)
	if err := os.MkdirAll(dir.Path(), 0o777); err != nil {
		return "", err
	}
	every, args := n.every, n.args
	if b.quick {
		every, args = 20, nil
		env = append(env, "TRAINER_MAX_STEPS=60", "TRAINER_VAL_CHECK_INTERVAL=30")
	}
	env = append(env, rundir.EnvDir+"="+dir.Path(), rundir.EnvCell+"="+n.cell, fmt.Sprintf("TRAINER_CHECKPOINT_EVERY_STEPS=%d", every))
	return b.startWith(ctx, env, 1, b.kit("notebooks", n.name), args...)
}

// notebook runs a notebook to its end.
func (b *bench) notebook(ctx context.Context, n notebook) (string, error) {
	if _, err := b.train(ctx, n, "whole"); err != nil {
		return "", err
	}
	metrics, err := metricsOf(b.dir(n, "whole"))
	if err != nil {
		return "", err
	}
	value, known := metrics[n.metric]
	if !known {
		return "", fmt.Errorf("it has logged no %s", n.metric)
	}
	text := fmt.Sprintf("%s %.4f; %.0f examples a second, of which waiting for data %.1f %%", n.metric, value, metrics["train/examples_per_second"], 100*metrics["train/data_wait"])
	if !b.quick && !n.good(value) {
		return text, errors.New("worse than on a CPU")
	}
	return text, nil
}

// metricsOf has the last value of each metric.
func metricsOf(dir rundir.Dir) (map[string]float64, error) {
	lines, err := rundir.ReadMetrics(dir)
	all := map[string]float64{}
	for _, line := range lines {
		maps.Copy(all, line.Values)
	}
	return all, err
}

// resume kills a notebook's program after a checkpoint and starts it again: the weights must be
// those of the run that was not killed, bit for bit.
func (b *bench) resume(ctx context.Context, n notebook) (string, error) {
	after, err := b.trainAndKill(ctx, n)
	if err != nil {
		return "", err
	}
	said, err := b.train(ctx, n, "killed")
	if err != nil {
		return "", err
	}
	if !strings.Contains(said, "training resumes after step ") {
		return "", fmt.Errorf("killed after %s, and started again, but it doesn't say that it resumes", after)
	}
	same, err := b.sameWeights(n, "whole", "killed")
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("killed after %s, resumed", after)
	if same {
		return text + ": the same weights, bit for bit", nil
	}
	if _, err := b.train(ctx, n, "again"); err != nil {
		return text, err
	}
	again, err := b.sameWeights(n, "whole", "again")
	return text, errors.Join(err, fmt.Errorf("other weights than without (two runs that were not killed have the same weights: %v)", again))
}

// trainAndKill starts a notebook's program, and kills it when it has written a checkpoint.
func (b *bench) trainAndKill(ctx context.Context, n notebook) (after string, err error) {
	mark := fmt.Sprintf("GPU_CHECK_KILL_%d=1", os.Getpid())
	ended := make(chan error, 1)
	go func() {
		_, err := b.train(ctx, n, "killed", mark)
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			return "", errors.Join(errors.New("the program ended before it could be killed"), err)
		case <-time.After(20 * time.Millisecond):
		}
		all, err := b.dir(n, "killed").CheckpointFolders()
		if err == nil && len(all) == 0 {
			continue
		}
		for pid := range proc.With(mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // It may just have ended.
		}
		exit, failed := errors.AsType[*exec.ExitError](<-ended)
		switch {
		case err != nil:
			return "", err
		case !failed || exit.ExitCode() >= 0:
			return "", errors.New("the program ended before it was killed: there were too few updates after its first checkpoint")
		}
		return filepath.Base(all[len(all)-1]), nil
	}
}

// sameWeights compares the weights in the last checkpoints of two runs.
func (b *bench) sameWeights(n notebook, one, other string) (bool, error) {
	var sums [2][sha256.Size]byte
	var at [2]string
	for i, run := range []string{one, other} {
		all, err := b.dir(n, run).CheckpointFolders()
		if err != nil || len(all) == 0 {
			return false, errors.Join(fmt.Errorf("the run %s has no checkpoint", run), err)
		}
		last := all[len(all)-1]
		text, err := os.ReadFile(filepath.Join(last, "model.safetensors"))
		if err != nil {
			return false, err
		}
		sums[i], at[i] = sha256.Sum256(text), filepath.Base(last)
	}
	if at[0] != at[1] {
		return false, fmt.Errorf("the last checkpoints are %s and %s", at[0], at[1])
	}
	return sums[0] == sums[1], nil
}
