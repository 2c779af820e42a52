package watch

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"gonbatch/internal/rundir"
)

// Limits on the phases of a job's end, so that all ranks have ended within 5 seconds.
const (
	// readyTime limits the wait for the other ranks' last actions.
	readyTime = 1500 * time.Millisecond
	// hurryTime is what remains of readyTime when the launcher sends SIGTERM: a second later it
	// kills this process.
	hurryTime = 200 * time.Millisecond
	// deadTime is how long the launcher has to notice a rank that died by itself: it then reports
	// that rank's exit code, not this one's.
	deadTime = time.Second
	// endTime is how long a goroutine waits for another one to end the process.
	endTime = 6 * time.Second
	// reportWait is how long a rank waits until the report is written.
	reportWait = 4 * time.Second
)

// end runs on a hub. It informs the other ranks, reports once they are ready, and ends the process.
// No rank ends before the report is written, because a launcher that sees one rank end kills the
// rest.
func (h *hub) end(v *verdict, ranks []string) {
	w := h.watch
	if !w.begin() {
		return
	}
	terminated := w.catchSIGTERM()
	if v.Failure.Kind == rundir.Stuck || v.Failure.Kind == rundir.Mismatch {
		v.Failure.Ranks = ranks
	}
	r := w.newReport(v)
	if w.config.LauncherEndsAll {
		r.print()
	}
	h.tell(order{Verdict: v})
	w.finalActions(v)
	h.waitReady(readyTime, terminated)
	r.complete()
	r.print()
	if v.Failure.Kind == rundir.Died {
		select {
		case <-terminated: // The launcher has noticed.
		case <-time.After(deadTime):
		}
	}
	w.config.Exit(exitCode)
}

// followVerdict runs on the other ranks when they get a hub's verdict.
func (w *Watch) followVerdict(v *verdict, hub int, l *link) {
	if !w.begin() {
		return
	}
	w.catchSIGTERM()
	fmt.Fprintf(w.config.Log, "gonbatch: rank %d ends because of rank %d (%s): rank %d's log has the details\n", w.config.Rank, v.Failure.Rank, v.Failure.Host, hub)
	w.finalActions(v)
	if l.send(report{Ready: true}) == nil {
		l.conn.SetReadDeadline(time.Now().Add(reportWait))
		for l.receive(&order{}) == nil {
			continue // The connection breaks when the hub ends.
		}
	}
	w.config.Exit(exitCode)
}

// endAlone ends this rank if no hub does. The run directory decides which rank reports.
func (w *Watch) endAlone(v *verdict) {
	if !w.begin() {
		return
	}
	r := w.newReport(v)
	w.finalActions(v)
	r.print()
	w.config.Exit(exitCode)
}

// begin reports whether this is the first reason to end.
func (w *Watch) begin() bool { return w.ending.CompareAndSwap(false, true) }

// catchSIGTERM keeps SIGTERM from ending this process before it has reported: a launcher that
// has seen a rank die sends SIGTERM to all. The channel is closed when the signal arrives.
func (w *Watch) catchSIGTERM() <-chan struct{} {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGTERM)
	hurry := make(chan struct{})
	go func() {
		<-received
		close(hurry)
	}()
	return hurry
}

// finalActions are the last actions of each rank before all ranks end.
func (w *Watch) finalActions(v *verdict) {
	if v.Stacks {
		if err := w.saveStacks(); err != nil {
			fmt.Fprintf(w.config.Log, "gonbatch: rank %d: save the goroutines' stacks: %v\n", w.config.Rank, err)
		}
	}
	for _, p := range v.Stuck {
		p.Kill()
	}
}

// maxStacks limits the text of all goroutines' stacks.
const maxStacks = 16 << 20

// saveStacks writes the stacks of all goroutines to the run directory.
func (w *Watch) saveStacks() error {
	if w.config.Run == (rundir.Dir{}) {
		return nil
	}
	text := make([]byte, 64<<10)
	n := runtime.Stack(text, true)
	for n == len(text) && n < maxStacks {
		text = make([]byte, 2*len(text))
		n = runtime.Stack(text, true)
	}
	if err := os.MkdirAll(w.config.Run.Stacks(), 0o777); err != nil {
		return err
	}
	return os.WriteFile(w.config.Run.StackPath(w.config.Rank), text[:n], 0o666)
}
