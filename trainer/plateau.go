package trainer

import (
	"math"

	"gonbatch/checkpoint"
)

// plateau is the state of the schedule "plateau".
type plateau struct {
	Of         string             `json:"of"` // The goal.
	Best       *checkpoint.Number `json:"best"`
	Waited     int                `json:"waited"`   // Validations since the best one, or since the last reduction.
	Cooldown   int                `json:"cooldown"` // Validations that don't count yet.
	Reductions int                `json:"reductions"`
}

// observe takes a validation's metrics and reports whether the rate is now lower. It counts as
// PyTorch's ReduceLROnPlateau does.
func (p *plateau) observe(c ScheduleConfig, metrics Metrics) bool {
	value, ok := metrics[c.Monitor]
	if !ok {
		return false
	}
	if of := goal(c.Mode, c.Monitor); p.Of != of { // The old best value says nothing about this one.
		*p = plateau{Of: of, Reductions: p.Reductions}
	}
	if better(value, p.Best, c.Mode, c.MinDelta) {
		p.Best, p.Waited = (*checkpoint.Number)(&value), 0
	} else {
		p.Waited++
	}
	if p.Cooldown > 0 {
		p.Cooldown, p.Waited = p.Cooldown-1, 0
	}
	if p.Waited <= c.Patience {
		return false
	}
	p.Waited, p.Cooldown, p.Reductions = 0, c.Cooldown, p.Reductions+1
	return true
}

// factor returns the factor of the rate after the reductions so far.
func (p *plateau) factor(c ScheduleConfig) float64 {
	return max(math.Pow(c.Gamma, float64(p.Reductions)), c.MinFactor)
}

// plateaus returns the schedule if it is "plateau" and no option has replaced it.
func (t *Trainer) plateaus() (c ScheduleConfig, ok bool) {
	c, ok = t.rates.schedule.(ScheduleConfig)
	return c, ok && c.Kind == "plateau"
}

// reduceRates sets the rates after a validation.
func (r *run) reduceRates(values Metrics) error {
	c, ok := r.plateaus()
	if !ok || !r.at.Plateau.observe(c, values) {
		return nil
	}
	r.rates.reduced = r.at.Plateau.factor(c)
	return r.rates.set(int(r.at.Step), r.plan.updates)
}
