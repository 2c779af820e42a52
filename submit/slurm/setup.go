package slurm

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"al.essio.dev/pkg/shellescape"
	"golang.org/x/sys/unix"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// The modules and the setup of a job run in a shell of their own, which ends by becoming "submit
// job --leave FILE": that writes the state that they have set to a file. srun is started in this
// state, as "submit job --enter FILE srun ...". Nothing of it reaches the job itself, or SLURM's
// other commands.

// shellState is what a shell passes on to its programs, except its folder, which srun sets. A
// variable need not be valid text.
type shellState struct {
	Environ [][]byte `json:",omitempty"`
	Umask   int
	Limits  map[int]unix.Rlimit
}

// limits are the limits that a shell can set.
var limits = []int{
	unix.RLIMIT_AS, unix.RLIMIT_CORE, unix.RLIMIT_CPU, unix.RLIMIT_DATA, unix.RLIMIT_FSIZE, unix.RLIMIT_LOCKS, unix.RLIMIT_MEMLOCK, unix.RLIMIT_MSGQUEUE,
	unix.RLIMIT_NICE, unix.RLIMIT_NPROC, unix.RLIMIT_RSS, unix.RLIMIT_RTPRIO, unix.RLIMIT_RTTIME, unix.RLIMIT_SIGPENDING, unix.RLIMIT_STACK,
}

// leave writes this process's state to a file. files are the shell's soft and hard limit of open
// files, because Go raises the soft one for itself.
func leave(path string, environ, files []string) error {
	s := shellState{Umask: unix.Umask(0), Limits: map[int]unix.Rlimit{}}
	unix.Umask(s.Umask)
	for _, v := range environ {
		s.Environ = append(s.Environ, []byte(v))
	}
	s.Limits[unix.RLIMIT_NOFILE] = unix.Rlimit{Cur: limitOf(files[0]), Max: limitOf(files[1])}
	for _, which := range limits {
		var limit unix.Rlimit
		if err := unix.Getrlimit(which, &limit); err == nil {
			s.Limits[which] = limit
		}
	}
	return rundir.WriteJSON(path, s)
}

// limitOf returns the limit that a shell prints: a number, or "unlimited".
func limitOf(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return unix.RLIM_INFINITY
	}
	return n
}

// enter gives this process a state, except the environment, and becomes a command.
func enter(path string, environ, command []string) error {
	var s shellState
	if err := rundir.ReadJSON(path, &s); err != nil {
		return err
	}
	unix.Umask(s.Umask)
	for which, limit := range s.Limits {
		// Package syscall knows which limit of files Go would restore.
		if err := syscall.Setrlimit(which, &syscall.Rlimit{Cur: limit.Cur, Max: limit.Max}); err != nil {
			return fmt.Errorf("set limit %d: %w", which, err)
		}
	}
	return fmt.Errorf("%s: %w", command[0], syscall.Exec(command[0], command, environ))
}

// setup is the setup of a job, and the state that it has left.
type setup struct {
	text, file string
	// ran is set once environ is the environment that it has left.
	ran     bool
	environ []string
}

// Setup runs the setup, and returns its exit code.
func (in *inside) Setup() (code int, err error) {
	if in.setup.text == "" {
		return 0, nil
	}
	leave := []string{in.spec.RunDir.Submit(), "job", "--leave", in.setup.file}
	cmd := exec.Command("/bin/bash", "-c", in.setup.text+"\nexec "+shellescape.QuoteCommand(leave)+` "$(ulimit -Sn)" "$(ulimit -Hn)"`, "setup")
	cmd.Env = clean(in.shell.Environ)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // A pipe would last as long as what the setup has left running.
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("setup: %w", err)
	}
	_ = cmd.Wait() // Its state says more.
	if code = submit.ProcessCode(cmd.ProcessState); code != 0 {
		return code, nil
	}
	var s shellState
	if err := rundir.ReadJSON(in.setup.file, &s); err != nil {
		return 0, fmt.Errorf("a command of --setup has ended the shell: use no exit and no exec in it")
	}
	for _, v := range s.Environ {
		in.setup.environ = append(in.setup.environ, string(v))
	}
	in.setup.ran, s.Environ = true, nil // Secrets need not stay in the file.
	return 0, rundir.WriteJSON(in.setup.file, s)
}

// clean returns an environment without what a job must not inherit from another one.
func clean(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return isInherited(name)
	})
}
