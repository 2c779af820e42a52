package rundir

import (
	"fmt"
	"syscall"
)

// Signal sends a signal to the process. It returns no error if the process has ended, and an error
// if it is on another machine, or in another container, because it cannot be reached.
func (p Process) Signal(sig syscall.Signal) error {
	switch {
	case p.Gone():
		return nil
	case !p.here():
		return fmt.Errorf("process %d runs on %s and cannot be reached from here: run the command there", p.PID, p.Host)
	}
	return syscall.Kill(p.PID, sig)
}
