package submit

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// lastWord is how long a command has to end after a second interrupt.
const lastWord = 5 * time.Second

// Interruptible returns a context that SIGINT and SIGTERM end, with an Interrupt as its cause, and
// so do SIGHUP, when the terminal is closed, and SIGPIPE, when the reader of the output is gone
// (submit ... | head): what submit started must end first, and save. A second SIGINT or SIGTERM is
// passed on by the Interrupt, and ends the process a little later, or a third at once.
func Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE) // For good: another write must not end the process while it ends others.
	if !signal.Ignored(syscall.SIGHUP) { // As it is below nohup.
		signal.Notify(gone, syscall.SIGHUP) // For good too: the shell and the kernel may both say that the terminal is gone.
	}
	again, end := make(chan struct{}), make(chan struct{})
	go func() {
		defer signal.Stop(signals)
		select {
		case sig := <-signals:
			cancel(Interrupt{Signal: sig.(syscall.Signal), Again: again})
		case sig := <-gone:
			cancel(Interrupt{Signal: sig.(syscall.Signal), Again: again})
		case <-end:
			return
		}
		select {
		case sig := <-signals:
			close(again)
			endProcess(sig.(syscall.Signal), end)
		case <-end:
		}
	}()
	return ctx, sync.OnceFunc(func() { cancel(nil); close(end) })
}

// endProcess ends this process by a signal, unless its command ends by itself in time.
func endProcess(sig syscall.Signal, end <-chan struct{}) {
	signal.Reset(syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-time.After(lastWord):
		_ = syscall.Kill(syscall.Getpid(), sig)
	case <-end:
	}
}
