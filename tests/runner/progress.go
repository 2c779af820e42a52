package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// eventsFile is the variable by which gotestsum learns where to write test2json's events.
const eventsFile = "GOTESTSUM_JSONFILE"

// Times of the lines that show progress.
const (
	lineEvery = 15 * time.Second
	readEvery = 200 * time.Millisecond
)

// shownTests is how many of the tests that run are named.
const shownTests = 3

// event is one of test2json's: https://pkg.go.dev/cmd/test2json
type event struct {
	Time                  time.Time
	Action, Package, Test string
}

// name returns the name of the test and its package.
func (e event) name() string {
	return e.Test + " (" + strings.TrimPrefix(e.Package, "gonbatch/") + ")"
}

// progress is how far the tests are.
type progress struct {
	begin                   time.Time
	passed, skipped, failed int
	// running are the tests, without their subtests, that have begun and not ended, and don't wait
	// for other tests.
	running map[string]time.Time
}

// add takes an event into account.
func (p *progress) add(e event) {
	if e.Test == "" {
		return
	}
	switch e.Action {
	case "pass":
		p.passed++
	case "skip":
		p.skipped++
	case "fail":
		p.failed++
	}
	if strings.Contains(e.Test, "/") {
		return
	}
	switch e.Action {
	case "run", "cont":
		p.running[e.name()] = e.Time
	case "pass", "skip", "fail", "pause":
		delete(p.running, e.name())
	}
}

// line describes the progress, the tests that have run for longest first.
func (p *progress) line(now time.Time) string {
	line := fmt.Sprintf("%v: %d passed, %d skipped, %d failed", now.Sub(p.begin).Round(time.Second), p.passed, p.skipped, p.failed)
	type test struct {
		name  string
		since time.Time
	}
	var running []test
	for name, since := range p.running {
		running = append(running, test{name, since})
	}
	slices.SortFunc(running, func(a, b test) int {
		return cmp.Or(a.since.Compare(b.since), strings.Compare(a.name, b.name))
	})
	for i, t := range running {
		if i == shownTests {
			return line + fmt.Sprintf(", and %d more", len(running)-i)
		}
		line += fmt.Sprintf(", %s for %v", t.name, now.Sub(t.since).Round(time.Second))
	}
	if len(running) == 0 {
		line += ", no test runs: packages are being compiled"
	}
	return line
}

// showProgress keeps writing lines, from the file in which gotestsum writes events.
func showProgress(w io.Writer, path string, every time.Duration) {
	p := &progress{begin: time.Now(), running: make(map[string]time.Time)}
	var events *bufio.Reader
	var begun []byte // A line whose end is not yet written.
	for next := p.begin.Add(every); ; time.Sleep(readEvery) {
		if events == nil {
			if file, err := os.Open(path); err == nil {
				events = bufio.NewReader(file)
			}
		}
		for events != nil {
			text, err := events.ReadBytes('\n')
			begun = append(begun, text...)
			if err != nil {
				break
			}
			var e event
			if json.Unmarshal(begun, &e) == nil {
				p.add(e)
			}
			begun = begun[:0]
		}
		if now := time.Now(); now.After(next) {
			fmt.Fprintln(w, p.line(now))
			next = next.Add(every)
		}
	}
}
