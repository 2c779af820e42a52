package submit

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// lastWord is the time that a command has to end after a second interrupt.
const lastWord = 5 * time.Second

// Interruptible returns a context that SIGINT and SIGTERM end, with an Interrupt as its cause.
// SIGHUP (the terminal was closed) and SIGPIPE (the reader of the output is gone, as in submit ...
// | head) end it too, so that the programs that submit started can save first. A second SIGINT or
// SIGTERM closes Interrupt.Again and ends the process after lastWord; a third ends it at once.
func Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE) // Forever: another write must not end the process while it stops others.
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it.
		signal.Notify(gone, syscall.SIGHUP) // Forever too: the shell and the kernel may both send it.
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

// endProcess ends this process with a signal, unless its command ends by itself in time.
func endProcess(sig syscall.Signal, end <-chan struct{}) {
	signal.Reset(syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-time.After(lastWord):
		_ = syscall.Kill(syscall.Getpid(), sig)
	case <-end:
	}
}
