package watch

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"gonbatch/internal/rundir"
)

// finalReport is the report of why the job ended.
type finalReport struct {
	watch   *Watch
	failure rundir.Failure
	stacks  bool
	// mine means that no other rank reports. err is why the failure could not be recorded.
	mine    bool
	err     error
	printed bool
}

// newReport records the failure at once, because there may be no time left later. The run directory
// decides which rank reports.
func (w *Watch) newReport(v *verdict) *finalReport {
	r := &finalReport{watch: w, failure: v.Failure, stacks: v.Stacks, mine: true}
	r.failure.Time = time.Now().UTC()
	if r.failure.LogTail == nil {
		r.failure.LogTail = w.logTail(r.failure.Rank)
	}
	if w.config.Run != (rundir.Dir{}) {
		r.mine, r.err = r.failure.Write(w.config.Run)
	}
	return r
}

// complete adds what the failed rank has logged since.
func (r *finalReport) complete() {
	tail := r.watch.logTail(r.failure.Rank)
	if !r.mine || r.err != nil || tail == nil || slices.Equal(tail, r.failure.LogTail) {
		return
	}
	r.failure.LogTail = tail
	r.err = r.failure.Replace(r.watch.config.Run)
}

// print prints the report, once.
func (r *finalReport) print() {
	if r.printed {
		return
	}
	r.printed = true
	text := ""
	if r.err != nil {
		text = fmt.Sprintf("gonbatch: %v\n", r.err)
	}
	if r.mine || r.err != nil {
		text += r.String()
	}
	fmt.Fprint(r.watch.config.Log, text)
}

// String returns the report for people.
func (r *finalReport) String() string {
	f, run := r.failure, r.watch.config.Run
	var b strings.Builder
	fmt.Fprintf(&b, "gonbatch: rank %d on %s failed", f.Rank, f.Host)
	if f.Step > 0 {
		fmt.Fprintf(&b, " at step %d", f.Step)
	}
	fmt.Fprintf(&b, " (%s): %s\n", f.Kind, f.Error)
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "%s:\n  %s\n", title, strings.Join(lines, "\n  "))
		}
	}
	list("what the ranks were doing", f.Ranks)
	if r.stacks && run != (rundir.Dir{}) {
		fmt.Fprintf(&b, "stacks of the goroutines: %s\n", run.Stacks())
	}
	list(fmt.Sprintf("last lines of rank %d", f.Rank), f.LogTail)
	return b.String()
}

// shownLines is how many lines of a log are shown.
const shownLines = 20

// logTail returns the end of a rank's log, or nil if there is none.
func (w *Watch) logTail(rank int) []string {
	if w.config.Run == (rundir.Dir{}) {
		return nil
	}
	const size = 16 << 10
	f, err := os.Open(w.config.Run.RankLog(rank))
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // only read
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	start := max(0, info.Size()-size)
	text := make([]byte, info.Size()-start)
	if n, err := f.ReadAt(text, start); err != nil && n == 0 {
		return nil
	}
	return lastLines(string(text), shownLines)
}

// lastLines returns the last n lines of a string.
func lastLines(text string, n int) []string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}

// crashError returns the first lines of a panic's text. An empty line separates them from the
// stacks.
func crashError(text string) string {
	message, _, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	lines := strings.Split(message, "\n")
	return strings.Join(lines[:min(len(lines), 5)], "\n")
}
