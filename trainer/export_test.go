package trainer

import (
	"testing"
	"time"

	"gonbatch/trainer/internal/saved"
	"gonbatch/trainer/internal/step"
)

// NewProcess resets what this package knows about earlier training runs of the process: the test
// continues like a program that is started again.
func NewProcess() {
	names = &namer{used: map[string]int{}}
	saved.Forget()
}

// WaitForCheckpoints returns when all saved checkpoints are on disk.
func (t *Trainer) WaitForCheckpoints() error { return t.folder.Wait() }

// Elapsed returns the training time at the last checkpoint.
func (t *Trainer) Elapsed() time.Duration { return t.at.Elapsed }

// PlateauFactors returns the factors of the rate after each value of the metric of the schedule
// "plateau".
func PlateauFactors(c ScheduleConfig, values []float64) (factors []float64) {
	var p plateau
	for _, value := range values {
		p.observe(c, Metrics{c.Monitor: value})
		factors = append(factors, p.factor(c))
	}
	return factors
}

// DivideSmall makes a test divide weights of any size by default.
func DivideSmall(t *testing.T) {
	least := step.LeastDivided
	step.LeastDivided = 1
	t.Cleanup(func() { step.LeastDivided = least })
}
