package distributed

import (
	"context"
	"errors"
	"slices"

	"gonbatch/distributed/keyvalue"
	"gonbatch/distributed/network"
	"gonbatch/distributed/pjrt"
	"gonbatch/distributed/watch"
)

// joinProcesses makes XLA itself connect the ranks, as it does on GPUs. Its clients find one
// another through a store in rank 0. It is collective.
func (w *World) joinProcesses(ctx context.Context) error {
	place, err := w.openStore(ctx)
	if err != nil {
		return err
	}
	w.processes = &pjrt.Processes{Rank: w.Rank(), Size: w.Size(), Store: keyvalue.Dial(w.Rank(), place), Enter: w.enterInProgram}
	w.OnClose(func() error { w.processes.Store.Close(); return nil })
	return pjrt.Join(w.platform, *w.processes)
}

// enterInProgram reports a compiled program's collective to the watch.
func (w *World) enterInProgram(kind, dtype, count, detail int) (leave func(error) error) {
	return w.watch.EnterCollective(watch.Collective{Kind: watch.Kind(kind), Type: int32(dtype), Count: int64(count), Detail: int64(detail)})
}

// storePlace is the address of rank 0's store, or the reason why there is none.
type storePlace struct {
	Place   keyvalue.Place
	Trouble string
}

// openStore creates the store in rank 0, and returns its place on all ranks. It is collective.
func (w *World) openStore(ctx context.Context) (keyvalue.Place, error) {
	local, err := w.allHere()
	if err != nil {
		return keyvalue.Place{}, err
	}
	var mine storePlace
	if w.IsMain() {
		mine = w.listenForStore(ctx, local)
	}
	all, err := gather(w, mine)
	if err != nil {
		return keyvalue.Place{}, err
	}
	if all[0].Trouble != "" {
		return keyvalue.Place{}, errors.New("rank 0: " + all[0].Trouble)
	}
	return all[0].Place, nil
}

func (w *World) listenForStore(ctx context.Context, local bool) storePlace {
	server, err := keyvalue.Listen(ctx, local)
	if err != nil {
		return storePlace{Trouble: err.Error()}
	}
	w.OnClose(func() error { server.Close(); return nil })
	return storePlace{Place: server.Place()}
}

// allHere reports whether all ranks can reach one another through this machine's loopback address.
// It is collective.
func (w *World) allHere() (bool, error) {
	mine := network.Key(network.Here()).For("store")
	all, err := gather(w, mine)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(all, func(other network.Key) bool { return !slices.Equal(other, mine) }), nil
}
