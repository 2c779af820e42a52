package ranktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"gonbatch/internal/bounded"
	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

// Ended describes a process that has ended: a rank, or mpirun with all of its ranks.
type Ended struct {
	// Code is the exit code, or 128 plus the number of the signal that ended the process.
	Code int
	At   time.Time
}

// limit ends ranks that would never end. Seconds may become minutes on a busy machine.
const limit = 20 * time.Minute

// asLogged makes a rank append its output to its own log. $0 is the log's path with @ instead of
// the rank, $1 that of a report of a failure; the rest is the program. Like submit's own launcher,
// it gives the other ranks time for the report, because MPICH's mpirun kills them as soon as it
// knows.
var asLogged = cluster.Shell() + `exec >>"${0/@/$(rank)}" 2>&1
report=$1
shift
[ -n "$PMI_FD" ] || exec "$@"
"$@"
code=$?
[ $code = 0 ] || for ((tenth = 0; tenth < 50; tenth++)); do
  if [ -e "$report" ]; then break; fi
  sleep 0.1
done
[ $code = 0 ] || sleep 1
exit $code`

// StartLogged runs only this test in n processes, as Start does. Each rank's output goes to its log
// in the run directory at folder. It returns how the ranks ended, in order of rank. If mpirun
// starts the ranks, it returns only how mpirun ended.
func StartLogged(t *testing.T, launcher Launcher, n int, folder string, env []string) []Ended {
	t.Helper()
	run := rundir.At(folder)
	if err := os.MkdirAll(run.Logs(), 0o777); err != nil {
		t.Fatal(err)
	}
	program := append([]string{"bash", "-c", asLogged, run.RankLogPattern("@"), run.FailurePath()}, thisTest(t)...)
	ended := make([]Ended, n)
	processes := launcher.start(t, n, program, env, func(rank int, cmd *exec.Cmd) {
		if launcher.byMPI() {
			log, err := os.Create(run.SchedulerLog())
			if err != nil {
				t.Fatal(err)
			}
			defer log.Close() //nolint:errcheck // mpirun has its own handle
			cmd.Stdout, cmd.Stderr = log, log
		}
		ended[rank] = runToEnd(t, cmd)
	})
	return ended[:processes]
}

// start runs a program in n processes: by one command if mpirun starts them, else by one for each
// rank, as torchrun does, each in a goroutine of its own. It returns the number of commands.
func (l Launcher) start(t *testing.T, n int, program, env []string, run func(rank int, cmd *exec.Cmd)) int {
	t.Helper()
	NeedGPUs(t, n, env)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	env = slices.Concat(os.Environ(), []string{child + "=1"}, l.env, env)
	if l.byMPI() {
		cmd := l.command(ctx, 0, slices.Concat(l.mpirun(t, n), program))
		cmd.Env = env
		run(0, cmd)
		return 1
	}
	address := l.rendezvous(t)
	var group sync.WaitGroup
	for rank := range n {
		group.Go(func() {
			cmd := l.command(ctx, rank, program)
			cmd.Env = append(slices.Clone(env), rankEnv(address, rank, n)...)
			run(rank, cmd)
		})
	}
	group.Wait()
	return n
}

// runAll runs a rank, or mpirun with its ranks, so that none outlives it and writes in folders that
// the test removes. It returns when the command itself ended.
func runAll(t *testing.T, cmd *exec.Cmd) (at time.Time, err error) {
	endRest := bounded.Mark(cmd)
	err, at = bounded.Run(cmd), time.Now()
	if killed := endRest(); killed > 0 {
		t.Logf("%d processes of %s outlived it, and were killed", killed, cmd)
	}
	return at, err
}

func runToEnd(t *testing.T, cmd *exec.Cmd) (e Ended) {
	at, err := runAll(t, cmd)
	e.At = at
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		e.Code = 128 + int(exit.Sys().(syscall.WaitStatus).Signal())
	case errors.As(err, &exit):
		e.Code = exit.ExitCode()
	case err != nil:
		t.Error(err)
	}
	return e
}

// FreeAddress returns an address on this machine that nobody listens on, and that no other test is
// given until t ends, in whatever process. Its port is outside the range that the kernel assigns
// automatically, so that it is still free when the test uses it.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for {
		address := fmt.Sprintf("127.0.0.1:%d", 22_000+rand.IntN(10_000))
		claim := listen(t, "unix", "@gonbatch-test-"+address) // An abstract socket ends with its process.
		if claim == nil {
			continue
		}
		l := listen(t, "tcp", address)
		if l == nil {
			claim.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { claim.Close() })
		return address
	}
}

// listen returns nil if the address is in use.
func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := net.Listen(network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// rankEnv returns the variables that torchrun sets.
func rankEnv(address string, rank, n int) []string {
	host, port, _ := net.SplitHostPort(address)
	return []string{"MASTER_ADDR=" + host, "MASTER_PORT=" + port, fmt.Sprintf("WORLD_SIZE=%d", n), fmt.Sprintf("RANK=%d", rank), fmt.Sprintf("LOCAL_RANK=%d", rank)}
}
