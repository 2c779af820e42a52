package trainer

import (
	"fmt"

	"gonbatch/checkpoint"
	"gonbatch/internal/plural"
)

// stopping is the state of early stopping.
type stopping struct {
	Of     string             `json:"of"` // The goal.
	Best   *checkpoint.Number `json:"best"`
	Waited int                `json:"waited"` // Validations since the best one.
	Last   *checkpoint.Number `json:"last"`   // Of the newest validation.
}

// goal identifies what should improve. A resumed training may have another goal: the best value for
// the old one says nothing about the new one.
func goal(mode, metric string) string { return mode + " " + metric }

// observe takes a validation's metrics and returns why the training should end, or "" if it should
// continue.
func (s *stopping) observe(c EarlyStoppingConfig, metrics Metrics) (reason string) {
	value, ok := metrics[c.Monitor]
	if !ok {
		return ""
	}
	if of := goal(c.Mode, c.Monitor); s.Of != of {
		*s = stopping{Of: of}
	}
	if better(value, s.Best, c.Mode, c.MinDelta) {
		s.Best, s.Waited = (*checkpoint.Number)(&value), 0
	} else {
		s.Waited++
	}
	s.Last = (*checkpoint.Number)(&value)
	return s.verdict(c)
}

// reached reports whether a value of the metric is good enough.
func (c EarlyStoppingConfig) reached(value float64) bool {
	switch {
	case c.StoppingThreshold == nil:
		return false
	case c.Mode == "max":
		return value >= *c.StoppingThreshold
	}
	return value <= *c.StoppingThreshold
}

// verdict returns why the training should end after the validations so far, or "" if it should
// continue.
func (s *stopping) verdict(c EarlyStoppingConfig) (reason string) {
	validations := plural.Of(s.Waited, "validation")
	switch {
	case s.Of != goal(c.Mode, c.Monitor):
		return ""
	case s.Last != nil && c.reached(float64(*s.Last)):
		return fmt.Sprintf("%s is %.6g: it has reached the threshold of %.6g", c.Monitor, float64(*s.Last), *c.StoppingThreshold)
	case s.Waited < max(c.Patience, 1):
		return ""
	case s.Best == nil:
		return fmt.Sprintf("%s was never a number in %s", c.Monitor, validations)
	}
	return fmt.Sprintf("%s has not been better than %.6g for %s", c.Monitor, float64(*s.Best), validations)
}
