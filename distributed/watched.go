package distributed

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"gonbatch/distributed/watch"
	"gonbatch/internal/cluster"
	"gonbatch/internal/rundir"
)

const defaultStuck = 5 * time.Minute

// stuckTimeout returns how long ranks may wait for one another; 0 means forever.
func stuckTimeout(getenv func(string) string) (time.Duration, error) {
	text := getenv(rundir.EnvStuckTimeout)
	if text == "" {
		return defaultStuck, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout < 0 {
		return 0, fmt.Errorf("%s=%q: it must be a duration such as 90s or 10m, or 0 to wait forever", rundir.EnvStuckTimeout, text)
	}
	return timeout, nil
}

// startWatch begins to watch the other ranks.
func (w *World) startWatch(ctx context.Context, c Config, peers communicator, stuck time.Duration) (*watch.Watch, error) {
	launcher := w.environment.Launcher
	return watch.Start(ctx, watch.Config{Rank: w.Rank(), Size: w.Size(), Host: hostname(), Exchange: peers, Run: w.run, Log: c.Log, Stuck: stuck,
		LauncherEndsAll: launcher == cluster.OpenMPI || launcher == cluster.PMI})
}

// watched is a communicator whose collectives are visible to the watch.
type watched struct {
	communicator
	watch *watch.Watch
}

var _ communicator = watched{}

func (w watched) AllReduce(values []float64) error {
	return w.watch.Enter(watch.AllReduce, watch.Float64, len(values))(w.communicator.AllReduce(values))
}

func (w watched) Broadcast(data []byte, root int) error {
	leave := w.watch.EnterCollective(watch.Collective{Kind: watch.Broadcast, Type: watch.Bytes, Count: int64(len(data)), Detail: int64(root) << 2})
	return leave(w.communicator.Broadcast(data, root))
}

func (w watched) AllGather(data []byte) ([][]byte, error) {
	leave := w.watch.Enter(watch.AllGather, watch.Bytes, len(data))
	all, err := w.communicator.AllGather(data)
	return all, leave(err)
}

func (w watched) Barrier() error {
	return w.watch.Enter(watch.Barrier, watch.Bytes, 0)(w.communicator.Barrier())
}

// prepareSums prepares for many sums of few values, if the communicator needs that.
func (w watched) prepareSums() error {
	tree, ok := w.communicator.(interface{ LinkTree() error })
	if !ok {
		return nil
	}
	return w.watch.Enter(watch.Barrier, watch.Bytes, 0)(tree.LinkTree())
}

func (w watched) Transport() unsafe.Pointer {
	inner := w.communicator.Transport()
	if inner == nil {
		return nil
	}
	return w.watch.Transport(inner)
}

// Close announces the end to the watch before it closes the communicator, which may wait for the
// other ranks: they need not end at the same time.
func (w watched) Close() error {
	w.watch.Closing()
	err := w.communicator.Close()
	w.watch.Close()
	return err
}
