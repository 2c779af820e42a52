package trainer

import (
	"fmt"
	"os"
)

// StoppedError reports that the training was told to stop before its end. It has saved a
// checkpoint, if it writes any, and resumes from it when it is started again.
type StoppedError struct {
	Step       int64
	Checkpoint string // The folder of checkpoints; empty if none are written.
	// Requeue is set if the scheduler told it to stop.
	Requeue bool
}

func (e *StoppedError) Error() string {
	if e.Checkpoint == "" {
		return fmt.Sprintf("trainer: told to stop after step %d, nothing is saved: set checkpoint.dir to resume", e.Step)
	}
	return fmt.Sprintf("trainer: told to stop after step %d: started again, it resumes from %s", e.Step, e.Checkpoint)
}

// DivergedError reports that a loss is no longer finite.
type DivergedError struct {
	Name  string // "the loss", or the loss of an objective.
	Value float64
	Step  int64
	Rank  int
	Host  string
}

func (e *DivergedError) Error() string {
	help := "a smaller learning rate, gradient_clip_norm or a look at the data may help"
	if e.Step == 0 { // No update has changed the weights.
		help = "look for NaN or infinite numbers in the inputs and labels, and in what the model and the loss make of them"
	}
	return fmt.Sprintf("trainer: %s is %v after step %d on rank %d (%s): %s", e.Name, e.Value, e.Step, e.Rank, e.Host, help)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "an unnamed host"
	}
	return name
}
