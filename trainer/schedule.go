package trainer

import (
	"fmt"
	"math"
	"slices"
)

// Schedule is a learning-rate schedule. Factor returns the factor by which to multiply the
// optimizer's own rate for update step, counted from 0, of total updates. total is 0 if the
// training has no limit in updates or epochs. Factor must be a pure function, because a training
// run that resumes calls it again.
type Schedule interface {
	Factor(step, total int) float64
}

// ScheduleFunc turns a function into a Schedule.
type ScheduleFunc func(step, total int) float64

// Factor calls f.
func (f ScheduleFunc) Factor(step, total int) float64 { return f(step, total) }

// ScheduleConfig selects a schedule. All counts are updates of the weights.
type ScheduleConfig struct {
	// Kind is one of
	//
	//   - "constant" (the default);
	//   - "step": multiplied by Gamma every StepSize updates;
	//   - "multistep": multiplied by Gamma at each of Milestones;
	//   - "cosine": Loshchilov and Hutter, SGDR, 2017, without restarts;
	//   - "one-cycle": Smith and Topin, Super-convergence, 2018: the rate rises during the first
	//     PeakAt of the updates, then falls, both along a cosine;
	//   - "plateau": multiplied by Gamma when Monitor has not improved for more than Patience
	//     validations, like PyTorch's ReduceLROnPlateau.
	Kind string `yaml:"kind" help:"constant, step, multistep, cosine, one-cycle or plateau (default: constant)"`
	// WarmupSteps is the number of updates at the beginning over which the rate rises linearly from
	// 0, with any Kind.
	WarmupSteps int `yaml:"warmup_steps" help:"updates over which the rate rises linearly from 0 (default: 0)"`
	// StepSize is the number of updates between the decays of "step".
	StepSize int `yaml:"step_size" help:"updates between decays of the step schedule"`
	// Milestones are the updates at which "multistep" decays, in rising order.
	Milestones []int `yaml:"milestones" help:"updates at which the multistep schedule decays"`
	// Gamma is the factor of each decay of "step", "multistep" and "plateau". Default: 0.1.
	Gamma float64 `yaml:"gamma" help:"factor of each decay of step, multistep and plateau (default: 0.1)"`
	// MinFactor is the factor at which "cosine" and "one-cycle" end, and the least one of
	// "plateau". Default: 0.
	MinFactor float64 `yaml:"min_factor" help:"factor at which cosine and one-cycle end, and the least one of plateau (default: 0)"`
	// StartFactor is the factor at which "one-cycle" begins. Default: 0.04.
	StartFactor float64 `yaml:"start_factor" help:"factor at which one-cycle begins (default: 0.04)"`
	// PeakAt is the fraction of the updates over which "one-cycle" rises. Default: 0.3.
	PeakAt float64 `yaml:"peak_at" help:"fraction of the updates over which one-cycle rises (default: 0.3)"`
	// Monitor is the metric that "plateau" watches, such as "val/loss" or "train/loss". Default:
	// val/loss.
	Monitor string `yaml:"monitor" help:"metric that plateau watches (default: val/loss)"`
	// Mode is "min" or "max". Default: as for EarlyStoppingConfig.
	Mode string `yaml:"mode" help:"min or max (default: by the metric's name, where it is well known)"`
	// Patience is the number of validations without improvement that "plateau" tolerates; it decays
	// at the next one. Default: 10. A flag's 0 is none.
	Patience int `yaml:"patience" help:"validations without improvement that plateau tolerates (default: 10)"`
	// MinDelta is the smallest change that counts as an improvement.
	MinDelta float64 `yaml:"min_delta" help:"smallest change of the metric that counts as an improvement for plateau"`
	// Cooldown is the number of validations after a decay that don't count.
	Cooldown int `yaml:"cooldown" help:"validations after a decay of plateau that do not count (default: 0)"`
}

// scheduleDefaults maps each kind to the values that its fields get if they are zero.
var scheduleDefaults = map[string]map[string]any{
	"step": {"gamma": 0.1}, "multistep": {"gamma": 0.1}, "one-cycle": {"start_factor": 0.04, "peak_at": 0.3},
	"plateau": {"gamma": 0.1, "monitor": "val/loss", "patience": 10},
}

// scheduleFields are the fields that each kind uses, besides those of all kinds.
var scheduleFields = map[string][]string{
	"step": {"step_size", "gamma"}, "multistep": {"milestones", "gamma"}, "cosine": {"min_factor"}, "one-cycle": {"min_factor", "start_factor", "peak_at"},
	"plateau": {"gamma", "min_factor", "monitor", "mode", "patience", "min_delta", "cooldown"},
}

func (c ScheduleConfig) check() error {
	if err := oneOf("schedule.kind", c.Kind, []string{"constant", "step", "multistep", "cosine", "one-cycle", "plateau"}); err != nil {
		return err
	}
	switch {
	case c.WarmupSteps < 0:
		return fmt.Errorf("schedule.warmup_steps: %d: it can't be negative", c.WarmupSteps)
	case c.Kind == "step" && c.StepSize < 1:
		return fmt.Errorf("schedule.step_size: %d: the schedule \"step\" needs at least 1", c.StepSize)
	case c.Kind == "multistep" && (len(c.Milestones) == 0 || !slices.IsSorted(c.Milestones) || c.Milestones[0] < 0):
		return fmt.Errorf("schedule.milestones: %v: the schedule \"multistep\" needs one or more, in rising order", c.Milestones)
	case c.Gamma == 0 && scheduleDefaults[c.Kind]["gamma"] != nil:
		return fmt.Errorf("schedule.gamma: 0: after the first decay nothing would be trained: it must be more than 0")
	case !(c.Gamma >= 0) || math.IsInf(c.Gamma, 1):
		return fmt.Errorf("schedule.gamma: %g: it must be a number of at least 0", c.Gamma)
	case !(c.MinFactor >= 0 && c.MinFactor <= 1):
		return fmt.Errorf("schedule.min_factor: %g: it must be from 0 to 1", c.MinFactor)
	case !(c.StartFactor >= 0 && c.StartFactor <= 1):
		return fmt.Errorf("schedule.start_factor: %g: it must be from 0 to 1", c.StartFactor)
	case !(c.PeakAt >= 0 && c.PeakAt < 1):
		return fmt.Errorf("schedule.peak_at: %g: it must be from 0 to less than 1", c.PeakAt)
	case c.Kind == "plateau":
		return c.checkPlateau()
	}
	return nil
}

func (c ScheduleConfig) checkPlateau() error {
	switch {
	case c.Gamma >= 1:
		return fmt.Errorf("schedule.gamma: %g: the schedule \"plateau\" needs less than 1", c.Gamma)
	case c.Patience < 0:
		return fmt.Errorf("schedule.patience: %d: it can't be negative", c.Patience)
	case c.Cooldown < 0:
		return fmt.Errorf("schedule.cooldown: %d: it can't be negative", c.Cooldown)
	case !(c.MinDelta >= 0):
		return fmt.Errorf("schedule.min_delta: %g: it can't be negative", c.MinDelta)
	case c.Monitor == "":
		return fmt.Errorf("schedule.monitor: the schedule \"plateau\" needs a metric, such as val/loss")
	case c.Mode == "":
		return unknownMode("schedule", c.Monitor)
	}
	return oneOf("schedule.mode", c.Mode, []string{"min", "max"})
}

// needsTotal reports whether the schedule depends on the total number of updates.
func (c ScheduleConfig) needsTotal() bool { return c.Kind == "cosine" || c.Kind == "one-cycle" }

// schedule returns nil for a rate that never changes.
func (c ScheduleConfig) schedule() Schedule {
	if c.Kind == "constant" && c.WarmupSteps == 0 {
		return nil
	}
	return c
}

// Factor implements Schedule.
func (c ScheduleConfig) Factor(step, total int) float64 {
	if step < c.WarmupSteps {
		return float64(step+1) / (float64(c.WarmupSteps) + 1)
	}
	step, total = step-c.WarmupSteps, total-c.WarmupSteps
	switch c.Kind {
	case "step":
		return math.Pow(c.Gamma, float64(step/c.StepSize))
	case "multistep":
		factor := 1.0
		for _, milestone := range c.Milestones {
			if step+c.WarmupSteps >= milestone {
				factor *= c.Gamma
			}
		}
		return factor
	case "cosine":
		return cosine(1, c.MinFactor, float64(step)/float64(max(total, 1)))
	case "one-cycle":
		peak := c.PeakAt * float64(total-1)
		if float64(step) < peak {
			return cosine(c.StartFactor, 1, float64(step)/peak)
		}
		if total <= 1 {
			return 1 // The peak is also the end.
		}
		return cosine(1, c.MinFactor, (float64(step)-peak)/(float64(total-1)-peak))
	}
	return 1
}

// cosine moves from one value to another as x goes from 0 to 1, flat at both ends.
func cosine(from, to, x float64) float64 {
	x = min(max(x, 0), 1)
	return to + (from-to)*(1+math.Cos(math.Pi*x))/2
}
