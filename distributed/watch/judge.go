package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// The time after which a wait for a rank that will not come is no chance any more.
const (
	// waitForGone is for a collective that somebody is in while a rank is gone.
	waitForGone = time.Second
	// waitForClosed is for a collective that somebody is in while a rank has ended its work, or for
	// a rank that is gone while others close.
	waitForClosed = 2 * time.Second
)

// limits are a job's own.
type limits struct {
	// stuck is how long ranks may wait for another; 0 is forever.
	stuck time.Duration
	// hasty makes every end without a goodbye a failure.
	hasty bool
}

// judge decides whether the job goes on. It has no side effects. Causes come before their effects:
// a rank's own word, ranks that disagree, one that is gone, one that is waited for.
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

// judgeFailures: a rank asks for the end.
func judgeFailures(peers []*peer) *verdict {
	for _, p := range peers {
		if p.failure != nil {
			return &verdict{Failure: *p.failure}
		}
	}
	return nil
}

// judgeGone: a rank's process ended without a goodbye. That may be the sloppy end of a program that
// has done all, so it only is a failure if the process said why, or was training, or is missed.
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
		since := now.Sub(first.gone) // For long, where it is not gone yet.
		missing = missing || p.alive() && (p.state.Problem != "" ||
			p.waited(now) > waitForGone && since > waitForGone ||
			p.state.Told && !first.state.Told || // The launcher ends us because that rank is gone.
			p.state.Closing && since > waitForClosed)
	}
	if !missing {
		return nil
	}
	return diedVerdict(now, first)
}

// knownToLauncher is a rank that can't be reached while the launcher ends others: it knows more of
// that rank's machine, so there is nothing to wait for. nil if there is none.
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
		f.Error, f.LogTail = crashError(p.crash), lastLines(p.crash, shownLines)
	case p.state.Told:
		f.Error = "it was told to stop by a signal, and ended while the others went on"
	case !p.lost.IsZero():
		f.Error = fmt.Sprintf("its machine, or the network to it, did not answer for %v", round(now.Sub(p.lost)))
	default:
		f.Error = "its process ended without World.Close: it was killed, or it gave up"
	}
	return &verdict{Failure: f}
}

// firstGone is the rank whose connection broke first.
func firstGone(peers []*peer) *peer {
	var first *peer
	for _, p := range peers {
		if !p.gone.IsZero() && !p.bye && (first == nil || p.gone.Before(first.gone)) {
			first = p
		}
	}
	return first
}

// judgeClosed: ranks are in a collective that others, which have ended their work, will never
// enter. Either these gave up early, or that collective is one too many: the smaller group is to
// blame.
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
		Error: fmt.Sprintf("%s has called Close after %d collectives and won't call %v, in which %s waits: it ended early, or not all ranks call the same collectives",
			closed[0].name(), closed[0].state.Entered, waiting.state.Current, waiting.name())},
		Stacks: true}
}

// judgeStuck: ranks have waited in a collective for too long. To blame are those that have not
// entered it; where all have, those that say nothing.
func judgeStuck(now time.Time, peers []*peer, limit time.Duration) *verdict {
	if limit <= 0 {
		return nil
	}
	waiting := longest(now, peers)
	if waiting == nil || waiting.waited(now) < limit {
		return nil
	}
	to, blame := lagging(now, peers, waiting, max(silentAfter, limit/2))
	if slices.ContainsFunc(to, (*peer).unreachable) {
		return nil // It may come back, or will be gone.
	}
	v := &verdict{Stacks: true, Failure: rundir.Failure{Kind: rundir.Stuck, Rank: waiting.rank, Host: waiting.host, Step: waiting.state.Step}}
	if len(to) == 0 {
		v.Failure.Error = fmt.Sprintf("all ranks have been in %v for %v without progress: the network between them, or its library, hangs",
			waiting.state.Current, round(waiting.waited(now)))
		return v
	}
	v.Failure.Rank, v.Failure.Host, v.Failure.Step = to[0].rank, to[0].host, to[0].state.Step
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

// longest is the rank that has waited longest, of those in the lowest collective: the others only
// wait for these.
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

// lagging lists the ranks that the waiting one waits for, and says why they are to blame. A rank
// that has said nothing for the time of quiet comes before one that speaks, the one that has said
// nothing for longest first: on a busy machine any may be late by seconds.
func lagging(now time.Time, peers []*peer, waiting *peer, quiet time.Duration) ([]*peer, string) {
	var silent, behind []*peer
	for _, p := range peers {
		switch {
		case p.alive() && now.Sub(p.heard) > quiet && (p.state.waiting() || p.state.Entered < waiting.state.Entered):
			silent = append(silent, p)
		case p.alive() && p.state.Entered < waiting.state.Entered:
			behind = append(behind, p)
		}
	}
	if len(silent) > 0 {
		slices.SortStableFunc(silent, func(a, b *peer) int { return a.heard.Compare(b.heard) })
		return silent, fmt.Sprintf("has been silent for %v: its process is stopped, or its machine hangs", round(now.Sub(silent[0].heard)))
	}
	return behind, "has not come to the collective that others are in"
}

// mostLost reports whether the connections to most ranks did not come back. Then the one that looks
// is cut off, rather than they.
func mostLost(peers []*peer) bool {
	n := 0
	for _, p := range peers {
		if !p.lost.IsZero() && !p.gone.IsZero() {
			n++
		}
	}
	return 2*n > len(peers)
}
