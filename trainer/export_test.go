package trainer

// NewProcess forgets what this package knows of earlier trainings of the process: a test goes on as
// a program that is started again would.
func NewProcess() {
	names = &namer{used: map[string]int{}}
	trainings = &ended{names: map[string]string{}}
}

// WaitForCheckpoints returns when those that were handed over are on the disk.
func (t *Trainer) WaitForCheckpoints() error { return t.saver.wait() }
