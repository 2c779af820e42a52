package fetch

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// lineEvery is the time between lines if there is no terminal: a log stays readable and still shows
// life.
const lineEvery = 5 * time.Second

// meter shows the progress of a download: a bar on a terminal, a line now and then elsewhere. Its
// methods may be called concurrently.
type meter struct {
	mu    sync.Mutex
	w     io.Writer // nil: silent
	name  string
	bar   *progressbar.ProgressBar // nil: no terminal
	n, of int64                    // of <= 0: unknown
	start time.Time
	last  time.Time
}

func newMeter(w io.Writer, name string, total int64) *meter {
	m := &meter{w: w, name: name, of: total, start: time.Now(), last: time.Now()}
	if w == nil {
		return m
	}
	if isTerminal(w) {
		m.bar = progressbar.NewOptions64(max(total, -1), progressbar.OptionSetWriter(w),
			progressbar.OptionSetDescription(name), progressbar.OptionShowBytes(true), progressbar.OptionShowCount(),
			progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish())
		return m
	}
	fmt.Fprintf(w, "%s: downloading%s\n", name, ofTotal(total))
	return m
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Write counts the bytes of b, for use with io.TeeReader.
func (m *meter) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(m.n + int64(len(b)))
	return len(b), nil
}

// begin begins an attempt, with the number of bytes to expect; -1 if unknown.
func (m *meter) begin(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > 0 && n != m.of {
		m.of = n
		if m.bar != nil {
			m.bar.ChangeMax64(n)
		}
	}
	m.set(0)
}

// at sets the number of bytes so far.
func (m *meter) at(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(n)
}

func (m *meter) set(n int64) {
	m.n = n
	switch {
	case m.w == nil:
	case m.bar != nil:
		_ = m.bar.Set64(n)
	case time.Since(m.last) >= lineEvery:
		m.last = time.Now()
		fmt.Fprintf(m.w, "%s: %s%s\n", m.name, size(n), m.percent())
	}
}

func (m *meter) percent() string {
	if m.of <= 0 {
		return ""
	}
	return fmt.Sprintf(" of %s, %d %%", size(m.of), 100*m.n/m.of)
}

// note writes a line of its own.
func (m *meter) note(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.w == nil {
		return
	}
	m.clear()
	fmt.Fprintf(m.w, "%s: %s\n", m.name, fmt.Sprintf(format, args...))
}

// done writes a last line with size and time.
func (m *meter) done() {
	took := time.Since(m.start).Round(100 * time.Millisecond)
	m.note("%s in %v", size(m.n), took)
}

// stop removes the bar; it is harmless after done.
func (m *meter) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clear()
	m.bar = nil
}

func (m *meter) clear() {
	if m.bar != nil {
		_ = m.bar.Clear()
	}
}

func ofTotal(n int64) string {
	if n <= 0 {
		return ""
	}
	return " " + size(n)
}

// size formats a number of bytes for people, in the decimal units that download pages use.
func size(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
