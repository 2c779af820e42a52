// Package ranktest runs a test's body in several processes. An MPI launcher, or the package itself,
// starts the test binary again in each of them. It is for tests only.
//
//	func TestAllReduce(t *testing.T) {
//		ranktest.Run(t, 3, func(t *testing.T) {
//			comm, err := mpi.Init(mpi.Candidates(os.Getenv)) // In each of 3 ranks.
//			...
//		})
//	}
package ranktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonbatch/internal/machine"
)

// Launcher starts ranks, usually by the mpirun of an MPI implementation.
type Launcher struct {
	// Name is the implementation.
	Name string
	// Commands are the names to look for on the PATH.
	Commands []string
	// Args are the arguments before the number of ranks.
	Args []string
	// within is the command that starts a rank in its place, and master is the rendezvous address.
	// If the ranks run on this machine, neither is set.
	within func(rank int) []string
	master string
	// env are variables of the ranks, besides those of the test. kind describes their effect.
	env  []string
	kind string
}

// String returns a name for subtests.
func (l Launcher) String() string { return l.Name + l.kind }

// With returns a launcher that also sets these variables. kind describes it in the names of tests,
// such as " over TCP".
func (l Launcher) With(kind string, env ...string) Launcher {
	l.kind += kind
	l.env = slices.Concat(l.env, env)
	return l
}

// command starts the rank's program, or mpirun with all ranks, in its place.
func (l Launcher) command(ctx context.Context, rank int, program []string) *exec.Cmd {
	if l.within != nil {
		program = slices.Concat(l.within(rank), program)
	}
	return exec.CommandContext(ctx, program[0], program[1:]...)
}

// mpirun returns the command that starts n ranks of a program, without the program.
func (l Launcher) mpirun(t *testing.T, n int) []string {
	t.Helper()
	return slices.Concat([]string{find(t, l)}, l.Args, []string{"-n", strconv.Itoa(n)})
}

// byMPI reports whether mpirun starts the ranks. A machine with GPUs may have none (see CUDA).
func (l Launcher) byMPI() bool { return l.Name != Torchrun.Name && os.Getenv(CUDA) == "" }

// rendezvous returns rank 0's address.
func (l Launcher) rendezvous(t *testing.T) string {
	if l.master != "" {
		return l.master
	}
	return FreeAddress(t)
}

// Loopback returns the variables, as NAME=VALUE, with which ranks of MPI meet at loopback: another
// test may remove the network interface of its cluster just as MPI looks at all interfaces. The
// first two are those of Open MPI, the third is that of UCX, which Debian's MPICH uses:
// https://docs.open-mpi.org/en/main/tuning-apps/networking/tcp.html and
// https://openucx.readthedocs.io/en/master/faq.html
func Loopback() []string {
	return []string{"OMPI_MCA_btl_tcp_if_include=lo", "OMPI_MCA_oob_tcp_if_include=lo", "UCX_NET_DEVICES=lo"}
}

var (
	// OpenMPI starts unbound ranks, even more than there are CPUs.
	OpenMPI = Launcher{Name: "Open MPI", Commands: []string{"mpirun.openmpi"}, Args: []string{"--allow-run-as-root", "--oversubscribe", "--bind-to", "none"},
		env: Loopback()}
	// MPICH starts ranks by Hydra.
	MPICH = Launcher{Name: "MPICH", Commands: []string{"mpirun.mpich", "mpiexec.hydra"}, env: Loopback()}
	// Torchrun runs no command: it starts the ranks with the variables that torchrun sets.
	Torchrun = Launcher{Name: "torchrun's variables"}
)

// child marks the processes that a launcher started.
const child = "RANKTEST_CHILD"

// InRank reports whether this process is one of the ranks.
func InRank() bool { return os.Getenv(child) != "" }

// Run runs the body on n ranks, once under each MPI. It fails if the body fails on any rank.
func Run(t *testing.T, n int, body func(t *testing.T)) {
	t.Helper()
	RunWith(t, []Launcher{OpenMPI, MPICH}, n, body)
}

// RunWith is like Run, with the given launchers.
func RunWith(t *testing.T, launchers []Launcher, n int, body func(t *testing.T)) {
	t.Helper()
	if InRank() {
		body(t)
		if !t.Failed() {
			notePassed(t)
		}
		return
	}
	for _, launcher := range launchers {
		t.Run(launcher.String(), func(t *testing.T) {
			dir := t.TempDir()
			out, err := Start(t, launcher, n, []string{passedDir + "=" + dir})
			noted, readErr := os.ReadDir(dir)
			passed := max(len(noted), strings.Count(out, "--- PASS: "+root(t))) // A test may have a rank's body of its own.
			if err != nil || readErr != nil || passed != n {
				t.Errorf("%d of %d ranks passed, %v:\n%s", passed, n, errors.Join(err, readErr), out)
			}
		})
	}
}

// passedDir names the folder in which each rank that has passed leaves a file: a launcher may mix
// the lines that ranks print, or drop the last ones.
const passedDir = "RANKTEST_PASSED_DIR"

func notePassed(t *testing.T) {
	t.Helper()
	dir := os.Getenv(passedDir)
	if dir == "" {
		return // It was started by Start.
	}
	file, err := os.CreateTemp(dir, "rank-")
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		t.Error(err)
	}
}

// Start runs only this test in n processes, with additional environment variables, and returns
// everything they print.
func Start(t *testing.T, launcher Launcher, n int, env []string) (string, error) {
	t.Helper()
	outputs, errs := make([]string, n), make([]error, n)
	launcher.start(t, n, thisTest(t), env, func(rank int, cmd *exec.Cmd) {
		var both bytes.Buffer
		cmd.Stdout, cmd.Stderr = &both, &both
		_, errs[rank] = runAll(t, cmd)
		outputs[rank] = both.String()
	})
	return strings.Join(outputs, ""), errors.Join(errs...)
}

// thisTest returns the command that runs only this test.
func thisTest(t *testing.T) []string {
	return []string{os.Args[0], "-test.run=^" + regexp.QuoteMeta(root(t)) + "$", "-test.v", "-test.count=1", fmt.Sprint("-test.short=", testing.Short())}
}

// root returns the name of the test without its subtests.
func root(t *testing.T) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return name
}

func find(t *testing.T, launcher Launcher) string {
	t.Helper()
	for _, name := range launcher.Commands {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	machine.Lacks(t, fmt.Sprintf("%s is not installed: none of %v is on the PATH (make test installs it)", launcher.Name, launcher.Commands))
	return ""
}
