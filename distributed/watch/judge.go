package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/plural"
	"gonbatch/internal/rundir"
)

// A wait longer than these is no coincidence.
const (
	// waitForGone is for a rank in a collective while another is gone.
	waitForGone = time.Second
	// waitForClosed is for a rank in a collective while another has finished its work, and for a
	// rank that is gone while others close.
	waitForClosed = 2 * time.Second
)

// limits are the job's own limits.
type limits struct {
	// stuck is how long ranks may wait for one another; 0 means forever.
	stuck time.Duration
	// hasty makes every end without a goodbye a failure.
	hasty bool
}

// judge returns the reason to end the job, or nil. It has no side effects. Causes come before their
// effects: first a failure that a rank reports itself, then a rank that is gone, a rank that has
// closed, and a rank that others wait for.
func judge(now time.Time, peers []*peer, l limits) *verdict {
	if v := judgeFailures(peers); v != nil {
		return v
	}
	if v := judgeGone(now, peers, l.hasty); v != nil {
		return v
	}
	if v := judgeClosed(now, peers); v != nil {
		return v
	}
	return judgeStuck(now, peers, l.stuck)
}

// judgeFailures finds a rank that reports a failure of its own.
func judgeFailures(peers []*peer) *verdict {
	for _, p := range peers {
		if p.failure != nil {
			return &verdict{Failure: *p.failure}
		}
	}
	return nil
}

// judgeGone finds a rank whose process ended without a goodbye. That may be a program that has
// finished without calling Close, so it is a failure only if the process gave a reason, was
// training, or is missed by other ranks.
func judgeGone(now time.Time, peers []*peer, hasty bool) *verdict {
	first := firstGone(peers)
	if first == nil {
		first = knownToLauncher(peers)
	}
	if first == nil {
		return nil
	}
	missing := hasty || first.state.Busy && !first.state.Told || first.crash != ""
	for _, p := range peers {
		since := now.Sub(first.gone) // A very long time, if it is not gone yet.
		missing = missing || p.alive() && (p.state.Problem != "" ||
			p.waited(now) > waitForGone && since > waitForGone ||
			p.state.Told && !first.state.Told || // The launcher ends this rank because that one is gone.
			p.state.Closing && since > waitForClosed)
	}
	if !missing {
		return nil
	}
	return diedVerdict(now, first)
}

// knownToLauncher returns a rank that can't be reached while the launcher ends other ranks, or nil.
// The launcher knows more about that rank's machine, so there is no need to wait.
func knownToLauncher(peers []*peer) *peer {
	told := slices.ContainsFunc(peers, func(p *peer) bool { return p.alive() && !p.unreachable() && p.state.Told })
	i := slices.IndexFunc(peers, func(p *peer) bool { return p.unreachable() && !p.state.Told })
	if !told || i < 0 {
		return nil
	}
	return peers[i]
}

func diedVerdict(now time.Time, p *peer) *verdict {
	f := rundir.Failure{Kind: rundir.Died, Rank: p.rank, Host: p.host, Step: p.state.Step}
	switch {
	case p.crash != "":
		f.Error, f.LogTail = crashError(p.crash), rundir.LastLines(p.crash, shownLines)
	case p.state.Told:
		f.Error = "it was told to stop by a signal, and ended while the others continued"
	case !p.lost.IsZero():
		f.Error = fmt.Sprintf("its machine, or the network to it, did not answer for %v", round(now.Sub(p.lost)))
	default:
		f.Error = "its process ended without World.Close: it was killed, or it exited"
	}
	return &verdict{Failure: f}
}

// firstGone returns the rank whose connection broke first.
func firstGone(peers []*peer) *peer {
	var first *peer
	for _, p := range peers {
		if !p.gone.IsZero() && !p.bye && (first == nil || p.gone.Before(first.gone)) {
			first = p
		}
	}
	return first
}

// judgeClosed finds ranks that are in a collective which others, having finished their work, will
// never enter. Either the others finished too early, or the collective is one too many: the smaller
// group is to blame.
func judgeClosed(now time.Time, peers []*peer) *verdict {
	waiting := longest(now, peers)
	if waiting == nil || waiting.waited(now) <= waitForClosed {
		return nil
	}
	var closed, others []*peer
	for _, p := range peers {
		switch {
		case (p.bye || p.state.Closing) && p.state.Entered < waiting.state.Entered:
			closed = append(closed, p)
		case p.waited(now) > 0:
			others = append(others, p)
		}
	}
	if len(closed) == 0 {
		return nil
	}
	blamed := closed[0]
	if len(closed) > len(others) {
		blamed = waiting
	}
	return &verdict{Failure: rundir.Failure{Kind: rundir.Mismatch, Rank: blamed.rank, Host: blamed.host, Step: blamed.state.Step,
		Error: fmt.Sprintf("%s has called Close after %s and won't call %v, in which %s waits: it ended early, or not all ranks call the same collectives",
			closed[0].name(), plural.Of(closed[0].state.Entered, "collective"), waiting.state.Current, waiting.name())},
		Stacks: true}
}

// judgeStuck finds ranks that have waited too long in a collective. The ranks that have not entered
// it are to blame, unless they work alone or did so until recently. If all have entered it, the
// silent ranks are to blame.
func judgeStuck(now time.Time, peers []*peer, limit time.Duration) *verdict {
	waiting := waitsTooLong(now, peers, limit)
	if waiting == nil {
		return nil
	}
	to, blame := lagging(now, peers, waiting, limit)
	if slices.ContainsFunc(to, (*peer).unreachable) {
		return nil // It may come back, or will soon count as gone.
	}
	if len(to) == 0 {
		return judgeNetwork(now, peers, waiting, limit)
	}
	v := &verdict{Stacks: true, Failure: rundir.Failure{Kind: rundir.Stuck, Rank: to[0].rank, Host: to[0].host, Step: to[0].state.Step}}
	var names []string
	for _, p := range to {
		names = append(names, fmt.Sprintf("%s at step %d", p.name(), p.state.Step))
		if now.Sub(p.heard) > limit/2 && p.silent(now) {
			v.Stuck = append(v.Stuck, p.process)
		}
	}
	v.Failure.Error = fmt.Sprintf("stuck: %s %s; %s has waited for it in %v for %v", strings.Join(names, ", "), blame, waiting.name(), waiting.state.Current, round(waiting.waited(now)))
	return v
}

// waitsTooLong returns the rank that has waited longest, if that is too long.
func waitsTooLong(now time.Time, peers []*peer, limit time.Duration) *peer {
	if waiting := longest(now, peers); limit > 0 && waiting != nil && waiting.waited(now) >= limit {
		return waiting
	}
	return nil
}

// judgeNetwork judges a wait for which no rank is to blame. If the last rank entered the
// collective, or another has left it, a short while ago, it may still complete.
func judgeNetwork(now time.Time, peers []*peer, waiting *peer, limit time.Duration) *verdict {
	moves := func(p *peer) bool { return p.alive() && (p.alone() || p.idle(now) < limit) }
	if slices.ContainsFunc(peers, moves) {
		return nil
	}
	return &verdict{Stacks: true, Failure: rundir.Failure{Kind: rundir.Stuck, Rank: waiting.rank, Host: waiting.host, Step: waiting.state.Step,
		Error: fmt.Sprintf("all ranks have been in %v for %v without progress: the network between them, or its library, hangs",
			waiting.state.Current, round(waiting.waited(now)))}}
}

// longest returns the rank that has waited longest in the lowest-numbered collective. Ranks in
// later collectives only wait for that one.
func longest(now time.Time, peers []*peer) *peer {
	var found *peer
	for _, p := range peers {
		if p.waited(now) == 0 || p.silent(now) {
			continue
		}
		if found == nil || p.state.Entered < found.state.Entered || p.state.Entered == found.state.Entered && p.waited(now) > found.waited(now) {
			found = p
		}
	}
	return found
}

// lagging lists the ranks that the waiting rank waits for, and says why they are to blame. Ranks
// that have been silent for long come before ranks that report, because on a busy machine any rank
// may be seconds late. The rank that has been silent longest comes first. A rank that reports is
// not to blame while it works alone, nor until the limit has passed after that.
func lagging(now time.Time, peers []*peer, waiting *peer, limit time.Duration) ([]*peer, string) {
	quiet := max(silentAfter, limit/2)
	var silent, behind []*peer
	for _, p := range peers {
		switch {
		case p.alive() && now.Sub(p.heard) > quiet && (p.state.waiting() || p.state.Entered < waiting.state.Entered):
			silent = append(silent, p)
		case p.alive() && p.state.Entered < waiting.state.Entered && !p.alone() && p.idle(now) >= limit:
			behind = append(behind, p)
		}
	}
	if len(silent) > 0 {
		slices.SortStableFunc(silent, func(a, b *peer) int { return a.heard.Compare(b.heard) })
		return silent, fmt.Sprintf("has been silent for %v: its process is stopped, or its machine hangs", round(now.Sub(silent[0].heard)))
	}
	return behind, "has not entered the collective that the others are in (if it was doing work of its own, wrap that work in World.OnMain or World.Alone)"
}

// missedAlone returns a rank that works alone and for which another has waited so long that it
// would otherwise count as stuck, and that other; nil if there is none.
func missedAlone(now time.Time, peers []*peer, limit time.Duration) (missed, by *peer) {
	by = waitsTooLong(now, peers, limit)
	if by == nil {
		return nil, nil
	}
	i := slices.IndexFunc(peers, func(p *peer) bool { return p.alive() && p.alone() && p.state.Entered < by.state.Entered })
	if i < 0 {
		return nil, nil
	}
	return peers[i], by
}

// mostLost reports whether the connections to most ranks are lost for good. Then this hub is the
// one that is cut off.
func mostLost(peers []*peer) bool {
	n := 0
	for _, p := range peers {
		if !p.lost.IsZero() && !p.gone.IsZero() {
			n++
		}
	}
	return 2*n > len(peers)
}
