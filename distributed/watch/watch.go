package watch

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gonbatch/distributed/network"
	"gonbatch/internal/rundir"
	"gonbatch/internal/solo"
)

// Exchange moves data between the ranks while the watch starts. Its methods are collective.
type Exchange interface {
	Broadcast(data []byte, root int) error
	AllGather(data []byte) ([][]byte, error)
}

// Config configures a watch.
type Config struct {
	Rank, Size int
	// Host is this machine's name, for reports.
	Host string
	// Exchange is what the ranks already communicate through.
	Exchange Exchange
	// Run is the run directory; zero if there is none.
	Run rundir.Dir
	// Log gets the report of a failure; nil means standard error.
	Log io.Writer
	// Stuck is how long ranks may wait for one another; 0 or less means forever.
	Stuck time.Duration
	// LauncherEndsAll means that the launcher ends all ranks when one ends without leaving MPI.
	// Such an end is then a failure, and must be reported immediately.
	LauncherEndsAll bool
	// Exit ends the process; nil means os.Exit.
	Exit func(code int)
}

// exitCode is the exit code of a rank that ends because of a failure.
const exitCode = 1

// Watch is this rank's part of the watch. Its methods may be called from several goroutines.
type Watch struct {
	config Config
	record record
	key    network.Key
	hub    *hub      // Only on ranks 0 and 1 of several.
	links  []*uplink // To the hubs of other ranks.

	on                  atomic.Bool // The ranks are connected.
	step                atomic.Int64
	busy, closing, told atomic.Bool
	problem             atomic.Pointer[string]
	ending              atomic.Bool
	stop                chan struct{}
	stopped             sync.Once
	crashes             atomic.Bool // A panic's text also goes to a hub.
	restore             func()      // Undoes what Start did to the process.
}

// hubs is the number of ranks, from rank 0, that watch the others.
const hubs = 2

// Start starts the watch. It blocks until all ranks have called it. If ranks can't reach the hubs
// by TCP, it logs that, and only the failures that ranks report themselves are noticed.
func Start(ctx context.Context, c Config) (*Watch, error) {
	if c.Log == nil {
		c.Log = os.Stderr
	}
	if c.Exit == nil {
		c.Exit = os.Exit
	}
	w := &Watch{config: c, record: newRecord(), stop: make(chan struct{}), restore: func() {}}
	if c.Size == 1 {
		return w, nil
	}
	if err := w.connect(ctx); err != nil {
		w.shut()
		return nil, fmt.Errorf("watch: rank %d of %d: %w", c.Rank, c.Size, err)
	}
	return w, nil
}

// connect connects the ranks. An error on one rank must not make the others wait, so the ranks
// exchange their errors too.
func (w *Watch) connect(ctx context.Context) error {
	places, err := w.exchangePlaces(ctx)
	if err != nil {
		return err
	}
	dialErr := w.dialHubs(ctx, places)
	troubles, err := w.exchangeTroubles(dialErr)
	if err != nil {
		return err
	}
	if len(troubles) > 0 {
		w.shut()
		if w.config.Rank == 0 {
			fmt.Fprintf(w.config.Log, "gonbatch: dead or stuck ranks will not be noticed, because not all ranks can reach ranks 0 and 1 by TCP: %s\n", strings.Join(troubles, "; "))
		}
		return nil
	}
	w.on.Store(true)
	for _, l := range w.links {
		go w.keep(l)
	}
	if w.hub != nil {
		go w.hub.run()
	}
	go w.watchHubs()
	w.watchProcess()
	return nil
}

// place is where a hub listens, or the reason why it doesn't.
type place struct {
	Addresses []string
	Trouble   string
}

// exchangePlaces gives every rank the key and the hubs' addresses.
func (w *Watch) exchangePlaces(ctx context.Context) ([]place, error) {
	local, err := w.shareKey()
	if err != nil {
		return nil, err
	}
	var mine place
	if w.config.Rank < hubs {
		mine = w.listen(ctx, local)
	}
	places := make([]place, min(hubs, w.config.Size))
	for hub := range places {
		if places[hub], err = w.exchangePlace(hub, mine); err != nil {
			return nil, err
		}
	}
	return places, nil
}

// listen makes this rank a hub.
func (w *Watch) listen(ctx context.Context, local bool) place {
	if err := network.Room(2 * w.config.Size); err != nil { // One for panics, too.
		return place{Trouble: err.Error()}
	}
	l, err := network.Listen(ctx, local, "0")
	if err != nil {
		return place{Trouble: err.Error()}
	}
	found, err := l.Addresses()
	if err != nil {
		l.Close()
		return place{Trouble: err.Error()}
	}
	for len(strings.Join(found, "")) > blockSize/2 {
		found = slices.Delete(found, len(found)/2, len(found)/2+1)
	}
	w.hub = newHub(w, l)
	go l.Serve(w.hubKey(w.config.Rank), w.hub.serve)
	return place{Addresses: found}
}

// Enter records that this rank enters a collective. Call the returned function with the
// collective's error when it ends; it returns that error. If the collective failed because another
// rank did, it doesn't return.
func (w *Watch) Enter(kind Kind, dtype, count int) (leave func(error) error) {
	return w.EnterCollective(Collective{Kind: kind, Type: int32(dtype), Count: int64(count)})
}

// EnterCollective is like Enter, for any collective. The watch numbers it.
func (w *Watch) EnterCollective(c Collective) (leave func(error) error) {
	w.record.enter(c)
	return func(err error) error {
		if err != nil {
			w.hold(err)
		}
		w.record.leave()
		return err
	}
}

// Progress records the training step that this rank has reached, and that it is training: from now
// on, the end of its process is a failure.
func (w *Watch) Progress(step int64) {
	w.step.Store(step)
	if !w.busy.Swap(true) {
		w.kick()
	}
}

// Heard returns how many messages of other ranks this rank has received: 0, unless it is a hub.
func (w *Watch) Heard() int64 {
	if w.hub == nil {
		return 0
	}
	return w.hub.heard.Load()
}

// Idle records that this rank is no longer training.
func (w *Watch) Idle() { w.busy.Store(false) }

// holdTime is how long the error of a collective is held back, so that the watch can find its
// cause.
const holdTime = 3 * time.Second

// hold waits for the watch to find out why a collective failed.
func (w *Watch) hold(err error) {
	if !w.on.Load() {
		return
	}
	text := err.Error()
	w.problem.Store(&text)
	w.kick()
	select {
	case <-time.After(holdTime):
	case <-w.stop:
	}
	if w.ending.Load() {
		time.Sleep(endTime) // Another goroutine ends the process.
	}
	w.problem.Store(nil)
}

// Closing records that this rank has finished its work, and will enter no more collectives.
func (w *Watch) Closing() {
	w.busy.Store(false)
	w.closing.Store(true)
	w.kick()
}

// Close tells the other ranks that the end of this process is not a failure. A second call does
// nothing.
func (w *Watch) Close() {
	w.Closing()
	w.stopped.Do(func() {
		if w.on.Load() {
			w.goodbye()
		}
		close(w.stop)
		if w.hub != nil {
			w.hub.goodbye()
		}
		w.shut()
	})
}

// over reports whether the watch has ended.
func (w *Watch) over() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// shut closes all connections.
func (w *Watch) shut() {
	w.on.Store(false)
	w.restore()
	if w.crashes.Load() {
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{}) // It was set, so it can be reset.
	}
	for _, l := range w.links {
		l.current().close()
	}
	if w.hub != nil {
		w.hub.close()
	}
}

// kick makes the hubs learn of a change at once.
func (w *Watch) kick() {
	for _, l := range w.links {
		notify(l.kicked)
	}
	if w.hub != nil {
		notify(w.hub.kicked)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// state returns what this rank is doing, with its collectives numbered above after.
func (w *Watch) state(after uint64) State {
	s := State{Step: w.step.Load(), Busy: w.busy.Load(), Closing: w.closing.Load(), Told: w.told.Load()}
	if problem := w.problem.Load(); problem != nil {
		s.Problem = *problem
	}
	w.record.read(&s)
	s.Recent = w.record.recent(after)
	if last := w.record.recent(s.Entered - min(s.Entered, 1)); len(last) > 0 {
		s.Current = last[0]
	}
	s.addSolo(time.Now())
	return s
}

// addSolo adds what this process does by itself.
func (s *State) addSolo(now time.Time) {
	work, moved := solo.Now()
	if work.What != "" {
		s.Alone, s.AloneFor = strings.ToValidUTF8(work.What[:min(len(work.What), maxAlone)], ""), now.Sub(work.Began)
	}
	if !moved.IsZero() {
		s.Moved = max(now.Sub(moved), 1)
	}
}

// maxAlone limits the text that each message of a rank repeats.
const maxAlone = 300
