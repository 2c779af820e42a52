package watch

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

var errNoFile = errors.New("the connection for a panic's last words is none of TCP")

// sendCrashes makes the Go runtime send a panic's text to a hub too.
func (w *Watch) sendCrashes(l *link) error {
	defer l.close() // The runtime has a copy.
	tcp, ok := l.conn.(*net.TCPConn)
	if !ok {
		return errNoFile
	}
	file, err := tcp.File()
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // SetCrashOutput has its own handle
	if err := debug.SetCrashOutput(file, debug.CrashOptions{}); err != nil {
		return err
	}
	w.crashes.Store(true)
	return nil
}

// crashHello opens the connection that only carries a panic's last words.
func (w *Watch) crashHello() hello {
	who := w.hello()
	who.Crash = true
	return who
}

// reopenCrash gives panics a way to the hub again. Without one, their text is in the log only.
func (w *Watch) reopenCrash(l *uplink) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	if crash, err := w.open(ctx, l.rank, l.addresses[:1], w.crashHello()); err == nil {
		_ = w.sendCrashes(crash)
	}
}

// termDelay is how long a rank that is told to stop waits to learn whether that is because another
// died.
const termDelay = 300 * time.Millisecond

// watchProcess lets the hubs know that this process was told to end by SIGTERM. The signal's effect
// is the usual one: the end, or that of the program's own handler, which gets it a second time.
func (w *Watch) watchProcess() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	restore := w.restore
	w.restore = func() {
		restore()
		signal.Stop(signals)
	}
	go func() {
		select {
		case <-w.stop:
			return
		case <-signals:
		}
		w.told.Store(true)
		w.kick()
		time.Sleep(termDelay)
		if w.ending.Load() {
			return // It ends anyway, when all is said.
		}
		signal.Stop(signals)
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // A process can always signal itself.
	}()
}
