package trainer

import "time"

// NewProcess forgets what this package knows of earlier trainings of the process: a test goes on as
// a program that is started again would.
func NewProcess() {
	names = &namer{used: map[string]int{}}
	trainings = &ended{names: map[string]string{}}
}

// WaitForCheckpoints returns when those that were handed over are on the disk.
func (t *Trainer) WaitForCheckpoints() error { return t.saver.wait() }

// Elapsed is the time of training at the last checkpoint.
func (t *Trainer) Elapsed() time.Duration { return t.at.Elapsed }
