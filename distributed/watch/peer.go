package watch

import (
	"fmt"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// peer is what a hub knows about a rank.
type peer struct {
	rank    int
	host    string
	process rundir.Process
	state   State
	// heard is when the rank last sent something. lost is when its connection broke; zero while it
	// is connected. gone is when its process ended without a goodbye, or its connection broke for
	// good; else zero.
	heard, lost, gone time.Time
	// compared is the number of its last compared collective.
	compared uint64
	// bye means that the rank has finished its work.
	bye bool
	// crash is the text of a panic.
	crash string
	// failure is a failure that the rank reports itself.
	failure *rundir.Failure
}

// giveUp counts a rank as gone if its connection has been lost for too long.
func (p *peer) giveUp(now time.Time) {
	if p.gone.IsZero() && !p.lost.IsZero() && now.Sub(p.lost) >= redialTime {
		p.gone = p.lost
	}
}

// compensatePause shifts the times of the rank by a pause of this hub.
func (p *peer) compensatePause(pause time.Duration, now time.Time) {
	for _, t := range []*time.Time{&p.heard, &p.lost, &p.gone} {
		if shifted := t.Add(pause); !t.IsZero() && shifted.Before(now) {
			*t = shifted
		} else if !t.IsZero() {
			*t = now
		}
	}
}

// unreachable reports whether the connection is lost but may come back.
func (p *peer) unreachable() bool { return p.alive() && !p.lost.IsZero() }

// alive reports whether the rank may still do something.
func (p *peer) alive() bool { return p.gone.IsZero() && !p.bye }

// silentAfter is how long a live rank may be silent. It reports twice a second.
const silentAfter = 2 * time.Second

func (p *peer) silent(now time.Time) bool { return p.alive() && now.Sub(p.heard) > silentAfter }

// waited returns how long the rank has been in its collective; 0 if it is in none.
func (p *peer) waited(now time.Time) time.Duration {
	if !p.alive() || p.unreachable() || !p.state.waiting() {
		return 0
	}
	return p.state.Since + now.Sub(p.heard)
}

// idle returns for how long the rank has neither entered nor left a collective, nor made progress
// on work of its own.
func (p *peer) idle(now time.Time) time.Duration {
	idle := p.state.Since
	if p.state.Moved > 0 {
		idle = min(idle, p.state.Moved)
	}
	return idle + now.Sub(p.heard)
}

// alone reports whether the rank is doing something by itself, for as long as that takes.
func (p *peer) alone() bool { return p.state.Alone != "" && !p.state.waiting() }

// describeAlone says what the rank does by itself.
func (p *peer) describeAlone(now time.Time) string {
	return fmt.Sprintf("has worked alone for %v (%s)", round(p.state.AloneFor+now.Sub(p.heard)), p.state.Alone)
}

// name returns a name such as "rank 3 (n2)".
func (p *peer) name() string {
	if p.host == "" {
		return fmt.Sprintf("rank %d", p.rank)
	}
	return fmt.Sprintf("rank %d (%s)", p.rank, p.host)
}

// describe returns a line about what the rank is doing.
func (p *peer) describe(now time.Time) string {
	parts := []string{}
	if p.state.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", p.state.Step))
	}
	since := round(p.state.Since + now.Sub(p.heard))
	switch {
	case p.bye:
		parts = append(parts, "has finished its work")
	case p.unreachable():
		parts = append(parts, fmt.Sprintf("hasn't been reachable for %v", round(now.Sub(p.lost))))
	case !p.gone.IsZero():
		parts = append(parts, fmt.Sprintf("has been gone for %v", round(now.Sub(p.gone))))
	case p.state.Closing:
		parts = append(parts, "has called Close")
	case p.state.waiting():
		parts = append(parts, fmt.Sprintf("has been in %v for %v", p.state.Current, since))
	case p.alone():
		parts = append(parts, p.describeAlone(now))
	case p.state.Entered == 0:
		parts = append(parts, "has not entered a collective yet")
	default:
		parts = append(parts, fmt.Sprintf("has been computing or loading since it left %v, %v ago", p.state.Current, since))
	}
	if p.silent(now) && !p.unreachable() {
		parts = append(parts, fmt.Sprintf("has been silent for %v", round(now.Sub(p.heard))))
	}
	return p.name() + ": " + strings.Join(parts, ", ")
}

// round makes a duration readable.
func round(d time.Duration) time.Duration {
	if d > 10*time.Second {
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}
