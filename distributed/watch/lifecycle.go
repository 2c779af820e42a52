package watch

import (
	"context"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// sendCrashes makes the Go runtime also send a panic's text to a hub.
func (w *Watch) sendCrashes(l *link) error {
	defer l.close() // The runtime keeps its own copy.
	file, err := l.conn.(*net.TCPConn).File()
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

// crashHello is the first message on the connection for a panic's text.
func (w *Watch) crashHello() hello {
	who := w.hello()
	who.Crash = true
	return who
}

// reopenCrash renews the connection for panics. Without it, their text is only in the log.
func (w *Watch) reopenCrash(l *uplink) {
	ctx, cancel := context.WithTimeout(context.Background(), attemptTime)
	defer cancel()
	if crash, err := w.open(ctx, l.rank, l.addresses[:1], w.crashHello()); err == nil {
		_ = w.sendCrashes(crash)
	}
}

// termDelay is how long a rank that gets SIGTERM waits for a verdict: the reason may be that
// another rank died. A second after it, mpirun kills the rank.
const termDelay = 600 * time.Millisecond

// watchProcess tells the hubs if this process gets SIGTERM. The signal then has its usual effect:
// it ends the process, or runs the program's own handler, which gets it a second time.
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
			return // The process ends after the report.
		}
		signal.Stop(signals)
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM) // A process can always signal itself.
	}()
}
