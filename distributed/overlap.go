package distributed

import (
	"fmt"
	"slices"

	"gonbatch/distributed/network"
	"gonbatch/distributed/pjrt"
	"gonbatch/internal/rundir"
)

// overlapWish is what a rank knows about whether gradients should travel while others are computed.
type overlapWish struct {
	Choice  string // GONBATCH_OVERLAP.
	Machine network.Key
	// Busy means that waiting for other ranks takes the only core that the rank computes on: MPI
	// polls, TCP sleeps.
	Busy bool
}

// setOverlap decides whether the gradients of the CPUs' programs travel while others are computed:
// see docs/adr/0026. It is collective.
func (w *World) setOverlap(getenv func(string) string) error {
	mine := overlapWish{Choice: getenv(rundir.EnvOverlap), Machine: network.Key(network.Here()).For("overlap")}
	mine.Busy = !w.environment.HasRendezvous() && len(w.cpus.list) == 1
	all, err := gather(w, mine)
	if err != nil {
		return err
	}
	on, err := overlaps(all)
	if err != nil {
		return err
	}
	pjrt.Split(on)
	w.alone = aloneOnNetwork
	if !severalMachines(all) && w.peers.InMemory() {
		w.alone = aloneInMemory
	}
	if on {
		w.sayOnce("gradients travel while others are computed")
	}
	return nil
}

// overlaps decides for all ranks. It pays where the network is slower than memory: where there are
// several machines.
func overlaps(all []overlapWish) (bool, error) {
	busy := false
	for rank, wish := range all {
		if wish.Choice != all[0].Choice {
			return false, fmt.Errorf("%s=%q on rank %d and %q on rank 0: all ranks need the same", rundir.EnvOverlap, wish.Choice, rank, all[0].Choice)
		}
		busy = busy || wish.Busy
	}
	switch choice := all[0].Choice; choice {
	case "":
		return severalMachines(all) && !busy, nil
	case rundir.OverlapOn, rundir.OverlapOff:
		return choice == rundir.OverlapOn, nil
	default:
		return false, fmt.Errorf("%s=%q: it must be %s or %s", rundir.EnvOverlap, choice, rundir.OverlapOn, rundir.OverlapOff)
	}
}

// severalMachines reports whether the ranks are on more than one.
func severalMachines(all []overlapWish) bool {
	return slices.ContainsFunc(all, func(wish overlapWish) bool { return string(wish.Machine) != string(all[0].Machine) })
}
