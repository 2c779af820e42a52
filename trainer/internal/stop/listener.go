package stop

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"gonbatch/distributed"
)

// Listener receives the signals that tell this process to stop, from a world's first trainer until
// the world is closed. While a training runs, the training decides when to stop. At other times
// only the loggers can have something to lose: they finish, and then the process ends.
type Listener struct {
	world *distributed.World
	// requeueCode is the exit code that asks for the process to be started again; 0 if that is
	// impossible.
	requeueCode int
	signals     chan os.Signal
	mu          sync.Mutex
	training    *Stopper // Nil outside Fit.
	unheeded    os.Signal
	flushes     []func() error
	lossy       bool               // A training run writes no checkpoints: it would start over if the process were started again.
	ignored     map[os.Signal]bool // By the program that started this one.
	decided     chan struct{}      // Closed when the process survives a signal for which its loggers have finished.
}

// stopSignals are sent by the batch script before the time limit, by the scheduler, and by people.
var stopSignals = []os.Signal{syscall.SIGUSR1, syscall.SIGTERM, syscall.SIGINT}

// handOnTime is how long a signal has to end the process.
const handOnTime = time.Second

// flushTime is how long the loggers have to finish when a signal ends the process.
const flushTime = 10 * time.Second

var listeners = struct {
	mu  sync.Mutex
	all map[*distributed.World]*Listener
}{all: map[*distributed.World]*Listener{}}

// Listen returns the listener of a world.
func Listen(w *distributed.World, requeueCode int) *Listener {
	listeners.mu.Lock()
	defer listeners.mu.Unlock()
	if l := listeners.all[w]; l != nil {
		return l
	}
	l := &Listener{world: w, requeueCode: requeueCode, signals: make(chan os.Signal, 4), ignored: map[os.Signal]bool{}}
	for _, s := range stopSignals {
		l.ignored[s] = signal.Ignored(s)
	}
	listeners.all[w] = l
	signal.Notify(l.signals, stopSignals...)
	go l.run()
	w.OnClose(l.close)
	return l
}

func (l *Listener) close() error {
	listeners.mu.Lock()
	defer listeners.mu.Unlock()
	delete(listeners.all, l.world)
	signal.Stop(l.signals)
	close(l.signals)
	return nil
}

// Add registers what must finish before a signal ends the process. A training run that is lossy
// writes no checkpoints.
func (l *Listener) Add(lossy bool, flushes ...func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lossy, l.flushes = l.lossy || lossy, append(l.flushes, flushes...)
}

// Begin passes signals to a training until End.
func (l *Listener) Begin(s *Stopper) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.training, l.unheeded = s, nil
	signal.Notify(l.signals, stopSignals...) // Again, if a signal was handed on.
}

// End ends what Begin has begun.
func (l *Listener) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.training = nil
}

func (l *Listener) run() {
	for received := range l.signals {
		if !l.tell(received) {
			l.leave(received)
		}
	}
}

// tell passes a signal to the running training, if there is one.
func (l *Listener) tell(received os.Signal) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.training == nil {
		return false
	}
	if received != syscall.SIGINT {
		l.training.Tell(Terminated)
	} else if l.unheeded != syscall.SIGINT {
		l.training.Tell(Interrupted)
	} else {
		go l.handOn(received) // A second one ends the process at once.
	}
	l.unheeded = received
	return true
}

// Heed acts on a signal that arrived too late for the training to stop, because it was about to end
// anyway.
func (l *Listener) Heed() {
	l.mu.Lock()
	received := l.unheeded
	l.unheeded = nil
	l.mu.Unlock()
	if received != nil {
		l.leave(received)
	}
}

// leave ends the process because of a signal: with the exit code that makes the job start again, if
// there is one, or else as the signal would without this listener.
func (l *Listener) leave(received os.Signal) {
	l.mu.Lock()
	requeue := l.requeueCode != 0 && !l.lossy && received != syscall.SIGINT
	l.mu.Unlock()
	switch {
	case requeue:
		Ignore()
		l.flush()
		l.world.Leave()
		os.Exit(l.requeueCode)
	case received == syscall.SIGUSR1, l.ignored[received]:
		return // Nobody asked for the warning, or the program was started in the background of a shell.
	}
	l.flush()
	l.handOn(received)
}

// flush finishes the loggers and the checkpoints being written. Until it is known whether the
// process survives, whatever the program logs has to wait.
func (l *Listener) flush() {
	l.mu.Lock()
	flushes := l.flushes
	if l.decided == nil {
		l.decided = make(chan struct{})
	}
	l.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for _, flush := range flushes {
			if err := flush(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	select {
	case <-finished:
	case <-time.After(flushTime):
		fmt.Fprintf(os.Stderr, "trainer: the loggers have not ended within %s\n", flushTime)
	}
}

// handOn raises the signal again without this listener. That ends the process, unless the program
// has its own handler. Then the program continues, but its loggers have finished.
func (l *Listener) handOn(received os.Signal) {
	signal.Stop(l.signals)
	_ = syscall.Kill(os.Getpid(), received.(syscall.Signal)) // A process can always signal itself.
	time.Sleep(handOnTime)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.decided != nil {
		close(l.decided)
		l.decided = nil
	}
}

// Wait blocks until it is known that the process survives, if its loggers have finished because of
// a signal.
func (l *Listener) Wait() {
	l.mu.Lock()
	decided := l.decided
	l.mu.Unlock()
	if decided != nil {
		<-decided
	}
}

// Ignore makes this process ignore signals to stop until it ends by itself.
func Ignore() { signal.Ignore(stopSignals...) }
