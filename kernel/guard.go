package kernel

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"gonbatch/internal/rundir"
)

// startGuard starts the process that outlives a kernel which is killed, and ends what that has
// started. The returned function ends it.
func startGuard(opts Options, s *session) (stop func(), err error) {
	r, w, err := os.Pipe() // Nothing that the kernel starts gets w, so r ends with the kernel.
	if err != nil {
		return nil, err
	}
	defer r.Close() //nolint:errcheck // the guard has its own handle
	cmd := exec.Command(opts.Submit, "kernel", "guard", "--session", s.dir)
	cmd.Env, cmd.Stdin, cmd.SysProcAttr = opts.Environ, r, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		w.Close() //nolint:errcheck // nothing was written to it
		return nil, fmt.Errorf("start the kernel's guard: %w", err)
	}
	return func() {
		w.Close()      //nolint:errcheck // its end is the message
		_ = cmd.Wait() // What it could not end, the kernel has ended before.
	}, nil
}

// guardTime bounds how long a guard looks for processes, and guardPause is between two looks.
const (
	guardTime  = 5 * time.Second
	guardPause = 50 * time.Millisecond
)

// Guard waits for the end of in, that of the session's kernel. Then it kills whatever the session
// has started and is still there, in whichever process group and session, and removes the session's
// folder. Jobs that a scheduler runs are none of the session's processes.
func Guard(in io.Reader, sessionDir string, environ []string) error {
	if !strings.HasPrefix(filepath.Base(sessionDir), sessionPrefix) {
		return fmt.Errorf("kernel: guard: %q is no folder of a session", sessionDir)
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP) // The kernel's signals are not for it.
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("kernel: guard: %w", err)
	}
	mark := rundir.EnvKeepDir + "=" + (&session{dir: sessionDir}).keep()
	for end := time.Now().Add(guardTime); killMarked(mark, jobID(environ)) > 0 && time.Now().Before(end); {
		time.Sleep(guardPause)
	}
	return os.RemoveAll(sessionDir)
}

// killMarked kills the processes that have the mark in their environment, and returns how many
// there were.
func killMarked(mark, job string) (killed int) {
	processes, _ := procfs.AllProcs() // Without /proc none is found.
	for _, p := range processes {
		env, err := p.Environ()
		if err != nil || p.PID == os.Getpid() || !slices.Contains(env, mark) || jobID(env) != job {
			continue // Somebody else's, or just gone.
		}
		if syscall.Kill(p.PID, syscall.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}

// jobID is the job of a scheduler that a process belongs to, if any.
func jobID(env []string) string {
	for _, name := range []string{"SLURM_JOB_ID=", "PBS_JOBID="} {
		for _, variable := range env {
			if id, ok := strings.CutPrefix(variable, name); ok {
				return id
			}
		}
	}
	return ""
}
