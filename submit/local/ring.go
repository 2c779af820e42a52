package local

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Without mpirun, this process starts the ranks itself, with the variables of torchrun: they
// connect over TCP.

// The time that the other ranks get when one has failed: to report why, and then to end.
const (
	toReport = 2 * time.Second
	toEnd    = 10 * time.Second
)

// ring starts the ranks of a cell over TCP and returns the exit code of the first one that fails;
// 0 if none does.
func (s *start) ring(ctx context.Context, cell rundir.Cell) (int, error) {
	common, err := s.ringEnv()
	if err != nil {
		return 0, err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var (
		running sync.WaitGroup
		first   sync.Once
		code    int
		failure error
	)
	for rank := range s.spec.Tasks() {
		cmd := exec.Command(s.spec.RunDir.Launcher(), cell.Name)
		cmd.Env = slices.Concat(submit.CleanEnviron(s.environ()), common, []string{"RANK=" + strconv.Itoa(rank), "LOCAL_RANK=" + strconv.Itoa(rank)})
		cmd.Stdout, cmd.Stderr = s.Err, s.Err
		running.Go(func() {
			ended, err := runGroup(ctx, cmd, tellLauncher)
			if err == nil && ended == 0 {
				return
			}
			first.Do(func() {
				code, failure = ended, err
				endOthers(ctx, fail)
			})
		})
	}
	running.Wait()
	return code, failure
}

// ringEnv returns the variables that all ranks of a cell share.
func (s *start) ringEnv() ([]string, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a port for the ranks: %w", err)
	}
	defer free.Close() //nolint:errcheck // rank 0 takes it
	_, port, err := net.SplitHostPort(free.Addr().String())
	tasks := strconv.Itoa(s.spec.Tasks())
	return []string{
		"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, "WORLD_SIZE=" + tasks, "LOCAL_WORLD_SIZE=" + tasks,
		"TORCHELASTIC_RUN_ID=" + filepath.Base(s.spec.RunDir.Path()), rundir.EnvRendezvousKey + "=" + rand.Text(),
	}, err
}

// endOthers ends the ranks whose context fail cancels: they are told to stop when they have had
// time to report, and killed later.
func endOthers(ctx context.Context, fail context.CancelCauseFunc) {
	if ctx.Err() != nil {
		return // They have been told already.
	}
	again := make(chan struct{})
	time.AfterFunc(toReport, func() { fail(submit.Interrupt{Signal: syscall.SIGTERM, Again: again}) })
	time.AfterFunc(toReport+toEnd, func() { close(again) })
}
