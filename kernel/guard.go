package kernel

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"gonbatch/internal/cluster"
	"gonbatch/internal/proc"
	"gonbatch/internal/rundir"
)

// startGuard starts the guard: a process that survives if the kernel is killed, and then ends what
// the kernel has started. stop ends the guard.
func startGuard(self string, environ []string, s *session) (stop func(), err error) {
	r, w, err := os.Pipe() // Nothing that the kernel starts inherits w, so r ends with the kernel.
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // the guard has its own handle
	cmd := exec.Command(self, "kernel", "guard", "--session", s.dir)
	cmd.Env, cmd.Stdin, cmd.SysProcAttr = environ, r, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		_ = w.Close() // Nothing was written to it.
		return nil, fmt.Errorf("start the kernel's guard: %w", err)
	}
	return func() {
		_ = w.Close()  // Its end is the message.
		_ = cmd.Wait() // If the guard could not end something, the kernel already has.
	}, nil
}

// guardTime is how long a guard looks for processes, and guardPause is the time between two looks.
// After guardLooks looks that find nothing, it stops: a process in the middle of an exec appears to
// have no environment.
const (
	guardTime  = 5 * time.Second
	guardPause = 20 * time.Millisecond
	guardLooks = 3
)

// guard waits for the end of in, which is the end of the session's kernel. Then it kills everything
// that the session started and that still runs, in any process group and session, and removes the
// session's folder. A scheduler's jobs are not the session's processes.
func guard(in io.Reader, sessionDir string, environ []string) error {
	if !strings.HasPrefix(filepath.Base(sessionDir), sessionPrefix) {
		return fmt.Errorf("kernel: guard: %q is not a session's folder", sessionDir)
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // The kernel's signals are not for the guard.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("kernel: guard: %w", err)
	}
	mark := rundir.EnvKeepDir + "=" + (&session{dir: sessionDir}).keep()
	for end, vain := time.Now().Add(guardTime), 0; vain < guardLooks && time.Now().Before(end); time.Sleep(guardPause) {
		vain++
		for pid, other := range proc.With(mark) {
			if jobID(other) == jobID(environ) && syscall.Kill(pid, syscall.SIGKILL) == nil {
				vain = 0
			}
		}
	}
	return os.RemoveAll(sessionDir)
}

// jobID returns the id of the scheduler's job that a process belongs to; "" if there is none.
func jobID(environ environment) string { return cluster.JobID(environ.get) }
