package local

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"syscall"
	"time"

	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
	"gonbatch/submit"
)

// Without mpirun, this process starts the ranks itself, with the variables of torchrun: they
// connect over TCP. It keeps rank 0's port until all have ended.

// The time that the other ranks get when one has failed: to report why, and then to end.
const (
	toReport = 2 * time.Second
	toEnd    = 10 * time.Second
)

// overTCP starts the ranks itself, and returns the exit code of the first one that fails; 0 if none
// does.
func (r ranks) overTCP() (int, error) {
	port, err := reservePort()
	if err != nil {
		return 0, err
	}
	defer port.close()
	ctx, fail := context.WithCancelCause(r.ctx)
	defer fail(nil)
	var (
		running sync.WaitGroup
		first   sync.Once
		code    int
		failure error
	)
	secret := rundir.EnvRendezvousKey + "=" + rand.Text()
	for rank := range r.spec.Tasks() {
		own := cluster.TorchrunVariables(rank, r.spec.Tasks(), port.number, r.spec.RunDir.Name())
		running.Go(func() {
			ended, err := r.run(ctx, r.rank(), slices.Concat(submit.CleanEnviron(r.environ()), own, []string{secret}))
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
