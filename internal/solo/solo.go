// Package solo records what this process does by itself, for as long as that takes, while other
// ranks of its job may wait for it: a download, a compilation, what a program does on one rank
// only. Package distributed/watch reports it, so that the process doesn't count as stuck.
//
//	defer solo.Begin("downloads mnist")()
//
// It is a record for the whole process, because the packages that begin such work know no ranks. It
// is not for waiting: a process that waits for another rank in a collective is in that collective.
package solo

import (
	"slices"
	"sync"
	"time"
)

// Work is something that this process does by itself.
type Work struct {
	// What says what the process does, such as "downloads mnist".
	What  string
	Began time.Time
}

var record struct {
	mu    sync.Mutex
	works []*Work // In the order in which they began.
	moved time.Time
}

// Begin records that work begins, until end is called. It may be called from several goroutines,
// and within other work.
func Begin(what string) (end func()) {
	w := &Work{what, time.Now()}
	record.mu.Lock()
	defer record.mu.Unlock()
	record.works, record.moved = append(record.works, w), w.Began
	return func() {
		record.mu.Lock()
		defer record.mu.Unlock()
		if i := slices.Index(record.works, w); i >= 0 {
			record.works, record.moved = slices.Delete(record.works, i, i+1), time.Now()
		}
	}
}

// Advance records that this process has done a part of what it shares with other ranks, such as one
// of many batches. Unlike work that has begun, this doesn't excuse a process that then hangs.
func Advance() {
	record.mu.Lock()
	defer record.mu.Unlock()
	record.moved = time.Now()
}

// Now returns the work that began first of what this process does now; zero if it does nothing by
// itself. moved is when work last began, ended or advanced; zero if it never has.
func Now() (first Work, moved time.Time) {
	record.mu.Lock()
	defer record.mu.Unlock()
	if len(record.works) > 0 {
		first = *record.works[0]
	}
	return first, record.moved
}
