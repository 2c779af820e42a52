package trainer

import (
	"fmt"

	"gonbatch/checkpoint"
)

// stopping is what early stopping remembers.
type stopping struct {
	Best   *checkpoint.Number `json:"best"`
	Waited int                `json:"waited"` // Validations since then.
}

// observe takes a validation's metrics and tells why the training should end, if it should.
func (s *stopping) observe(c EarlyStoppingConfig, metrics Metrics) (reason string, err error) {
	if c.Monitor == "" {
		return "", nil
	}
	value, ok := metrics[c.Monitor]
	if !ok {
		return "", unknownMetric("early_stopping.monitor", c.Monitor, metrics)
	}
	if better(value, s.Best, c.Mode, c.MinDelta) {
		s.Best, s.Waited = (*checkpoint.Number)(&value), 0
	} else {
		s.Waited++
	}
	return s.verdict(c), nil
}

// verdict is why the training should end by what was observed; empty if it should not.
func (s *stopping) verdict(c EarlyStoppingConfig) (reason string) {
	validations := fmt.Sprintf("%d validations", s.Waited)
	if s.Waited == 1 {
		validations = "1 validation"
	}
	switch {
	case c.Monitor == "" || s.Waited < c.Patience:
		return ""
	case s.Best == nil:
		return fmt.Sprintf("%s was never a number in %s", c.Monitor, validations)
	}
	return fmt.Sprintf("%s has not been better than %.6g for %s", c.Monitor, float64(*s.Best), validations)
}
