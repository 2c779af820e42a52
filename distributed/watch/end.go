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

// How long the end of a job may take. Together it is less than the 5 seconds in which all ranks are
// to be gone.
const (
	// readyTime is for the other ranks to do their last things.
	readyTime = 1500 * time.Millisecond
	// hurryTime is what is left of it when the launcher ends this process: it kills it a second
	// later.
	hurryTime = 200 * time.Millisecond
	// endTime is for the process to end at all, by another goroutine.
	endTime = 6 * time.Second
	// obeyTime is how long a rank waits for the report to be out.
	obeyTime = 4 * time.Second
)

// end is a hub's: it tells the others, reports once they are ready, and ends the process. Nobody
// ends before the report is out: a launcher that sees one rank end kills the rest.
func (h *hub) end(v *verdict, ranks []string) {
	w := h.watch
	if !w.begin() {
		return
	}
	terminated := w.defyTermination()
	if v.Failure.Kind == rundir.Stuck || v.Failure.Kind == rundir.Mismatch {
		v.Failure.Ranks = ranks
	}
	r := w.newReport(v)
	if w.config.Hasty {
		r.print()
	}
	h.tell(order{Verdict: v})
	w.lastThings(v)
	h.waitReady(readyTime, terminated)
	r.complete()
	r.print()
	w.config.Exit(exitCode)
}

// obey is what the other ranks do with the verdict of a hub.
func (w *Watch) obey(v *verdict, hub int, l *link) {
	if !w.begin() {
		return
	}
	w.defyTermination()
	fmt.Fprintf(w.config.Log, "gonbatch: rank %d ends because of rank %d (%s): rank %d's log has the details\n", w.config.Rank, v.Failure.Rank, v.Failure.Host, hub)
	w.lastThings(v)
	if l.send(report{Ready: true}) == nil {
		l.conn.SetReadDeadline(time.Now().Add(obeyTime))
		for l.receive(&order{}) == nil {
			continue // The connection breaks when the hub ends.
		}
	}
	w.config.Exit(exitCode)
}

// endAlone ends this rank where no hub does. The run directory decides who reports.
func (w *Watch) endAlone(v *verdict) {
	if !w.begin() {
		return
	}
	r := w.newReport(v)
	w.lastThings(v)
	r.print()
	w.config.Exit(exitCode)
}

// begin reports whether this is the first reason to end.
func (w *Watch) begin() bool { return w.ending.CompareAndSwap(false, true) }

// defyTermination keeps the process until its last words are said: a launcher that saw a rank die
// sends SIGTERM to all.
func (w *Watch) defyTermination() <-chan struct{} {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGTERM)
	hurry := make(chan struct{})
	go func() {
		<-received
		close(hurry)
	}()
	return hurry
}

// lastThings are what each rank does before all end.
func (w *Watch) lastThings(v *verdict) {
	if v.Stacks {
		if err := w.saveStacks(); err != nil {
			fmt.Fprintf(w.config.Log, "gonbatch: rank %d: save the goroutines' stacks: %v\n", w.config.Rank, err)
		}
	}
	for _, p := range v.Stuck {
		p.Kill()
	}
}

// maxStacks bounds the text of all goroutines' stacks.
const maxStacks = 16 << 20

// saveStacks writes what all goroutines are doing to the run directory.
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
