package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"gonbatch/internal/fetch"
	"gonbatch/internal/forecast"
	"gonbatch/internal/plugin"
	"gonbatch/submit"
	"gonbatch/submit/config"
	"gonbatch/submit/estimate"
	"gonbatch/submit/run"
)

// glanceOptions are those of the short forecast of a job on GPUs.
type glanceOptions struct {
	// Target is the GPU; "" is that of the job's type of GPUs.
	Target string
	// Forecast is how long the forecast may take; 0 is no forecast.
	Forecast time.Duration
}

// glanceTime is how long a user likes to wait for a line that helps.
const glanceTime = 20 * time.Second

func (o *glanceOptions) addFlags(fs *pflag.FlagSet) {
	config.NonEmpty(fs, &o.Target, "name", "target", "", "", "GPU of the job, for a short forecast of its training step: "+strings.Join(forecast.Names(), ", ")+" (default: by the type in --gpus-per-node)")
	fs.DurationVar(&o.Forecast, "forecast", glanceTime, "how long submit may take for that forecast, after the job is queued; 0 for none")
}

// check refuses options that mean nothing.
func (o *glanceOptions) check() error {
	if o.Forecast < 0 {
		return submit.Usagef("--forecast=%s: must be at least 0", o.Forecast)
	}
	if o.Target == "" {
		return nil
	}
	if _, err := forecast.Find(o.Target); err != nil {
		return submit.UsageError{Err: err}
	}
	return nil
}

// knownForecasts is where forecasts are kept.
func knownForecasts(shell submit.Shell) (estimate.Known, error) {
	dir, err := fetch.CacheDir(shell.Getenv, "forecasts")
	return estimate.Known{Dir: dir}, err
}

// glance says in a line what a training step of a queued job takes of its GPUs. Nothing of it is an
// error: the job is queued.
func (o *submitOptions) glance(ctx context.Context, shell submit.Shell, s run.Started, cancel string, cfg *config.Config) {
	known, err := knownForecasts(shell)
	if err != nil || !o.wantsGlance(s) {
		return
	}
	gpu, err := o.target(s.Spec.GPUs)
	if err == nil {
		err = haveCompiler(shell, gpu)
	}
	if err != nil {
		sayOnce(shell, known.Dir, err)
		return
	}
	world := forecast.World{Target: gpu.Name, Nodes: s.Spec.Nodes, GPUsPerNode: s.Spec.GPUs.Count}
	program := estimate.Program{
		Path: s.Spec.RunDir.Program(s.Trains.Name), Cell: *s.Trains, Dir: cmp.Or(s.Trains.Dir, s.Spec.WorkDir), Env: s.Spec.Env,
		Limits: estimate.Limits{Time: o.Forecast, PlainSteps: plainSteps, TimeFlag: "forecast"},
	}
	r, err := known.Glance(ctx, shell, program, world, isTerminal(shell.Err) || cfg.Origin("forecast") != config.Default)
	switch {
	case errors.Is(err, estimate.ErrSilent):
	case err != nil:
		fmt.Fprintf(shell.Err, "submit: no forecast: %v (it is not tried again for this program)\n", err)
	case r.Refused() != nil:
		shell.Warn("%v; the job is queued all the same; cancel it with: %s", r.Refused(), cancel)
	default:
		fmt.Fprintf(shell.Err, "submit: %s\n", r.Line())
	}
}

// wantsGlance reports whether a forecast makes sense: the job begins with a training of which each
// rank has a GPU, and somebody reads the line. Cells before it would have to run first.
func (o *submitOptions) wantsGlance(s run.Started) bool {
	return o.Forecast > 0 && !o.JSON && s.Trains != nil && s.Spec.GPUs.Count > 0 && s.Spec.TasksPerNode == s.Spec.GPUs.Count
}

// target is the GPU that the job gets.
func (o *glanceOptions) target(gpus submit.GPUs) (forecast.GPU, error) {
	if o.Target != "" {
		return forecast.Find(o.Target)
	}
	if gpus.Kind == "" {
		return forecast.GPU{}, fmt.Errorf("name your GPUs, by target: h100 in submit.yaml or by --gpus-per-node h100:%d", gpus.Count)
	}
	gpu, err := forecast.OfType(gpus.Kind)
	if err != nil {
		return gpu, fmt.Errorf("%w (target: in submit.yaml names your GPUs)", err)
	}
	return gpu, nil
}

// haveCompiler is an error if XLA's compiler for GPUs is not here.
func haveCompiler(shell submit.Shell, gpu forecast.GPU) error {
	dir, err := plugin.FindCompiler(plugin.Options{Getenv: shell.Getenv})
	if err == nil && dir == "" {
		err = fmt.Errorf("XLA's compiler for GPUs (257 MB) is not here: submit check --target %s NOTEBOOK downloads it", gpu.Name)
	}
	return err
}

// sayOnce says why there are no forecasts, once for each reason.
func sayOnce(shell submit.Shell, dir string, why error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return
	}
	said := filepath.Join(dir, "said-"+fmt.Sprintf("%.4x", sha256.Sum256([]byte(why.Error()))))
	file, err := os.OpenFile(said, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	_ = file.Close()
	fmt.Fprintf(shell.Err, "submit: no forecast of the training step: %v (said once; forecast: 0 turns forecasts off)\n", why)
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
