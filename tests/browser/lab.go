package browser

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

//go:embed drive.py
var drive string

// pageLimit is how long a command may take in addition to the time that it is given to wait:
// slightly more than the page's own waits.
const pageLimit = 6 * time.Minute

// Lab is a page with JupyterLab. Each method does one thing on the page, and fails the test if it
// can't. A Lab is not safe for use by several goroutines.
type Lab struct {
	// Folder has the screenshots.
	Folder string

	t       testing.TB
	in      io.WriteCloser
	answers chan answer
}

// answer is a line from the driver.
type answer struct {
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// args are the arguments of a command to the driver.
type args map[string]any

// Notebook opens a notebook in the server's folder and waits for its kernel.
func (l *Lab) Notebook(path string) { l.t.Helper(); l.do("open", args{"path": path}, pageLimit, nil) }

// Reload reloads the page. The kernel keeps running.
func (l *Lab) Reload() { l.t.Helper(); l.do("reload", nil, pageLimit, nil) }

// Menu chooses an entry of the menu bar.
func (l *Lab) Menu(labels ...string) { l.t.Helper(); l.do("menu", args{"path": labels}, 0, nil) }

// Save saves the notebook.
func (l *Lab) Save() { l.t.Helper(); l.do("save", nil, 0, nil) }

// Count returns the number of code cells in the notebook.
func (l *Lab) Count() (cells int) { l.t.Helper(); l.do("count", nil, 0, &cells); return cells }

// Run types a cell below the last one, starts it without waiting, and returns its index.
func (l *Lab) Run(code string) (cell int) {
	l.t.Helper()
	l.do("run", args{"code": code}, 0, &cell)
	return cell
}

// Ended waits until a cell has run.
func (l *Lab) Ended(cell int, limit time.Duration) {
	l.t.Helper()
	l.do("ended", args{"cell": cell, "seconds": limit.Seconds()}, limit, nil)
}

// Shows waits until the output of a cell contains the text.
func (l *Lab) Shows(cell int, text string, limit time.Duration) {
	l.t.Helper()
	l.do("shows", args{"cell": cell, "text": text, "seconds": limit.Seconds()}, limit, nil)
}

// Output returns the text that a cell shows.
func (l *Lab) Output(cell int) (text string) {
	l.t.Helper()
	l.do("output", args{"cell": cell}, 0, &text)
	return text
}

// Find counts the elements of a cell's output that match a CSS selector.
func (l *Lab) Find(cell int, selector string) (count int) {
	l.t.Helper()
	l.do("find", args{"cell": cell, "selector": selector}, 0, &count)
	return count
}

// Overflow returns how many pixels too wide a cell's output is.
func (l *Lab) Overflow(cell int) (pixels int) {
	l.t.Helper()
	l.do("overflow", args{"cell": cell}, 0, &pixels)
	return pixels
}

// Resize changes the size of the window.
func (l *Lab) Resize(width, height int) {
	l.t.Helper()
	l.do("resize", args{"width": width, "height": height}, 0, nil)
}

// Screenshot saves a picture of the page in Folder.
func (l *Lab) Screenshot(name string) { l.t.Helper(); l.screenshot(args{"name": name}) }

// ScreenshotCell saves a picture of one cell in Folder.
func (l *Lab) ScreenshotCell(name string, cell int) {
	l.t.Helper()
	l.screenshot(args{"name": name, "cell": cell})
}

func (l *Lab) screenshot(a args) {
	l.t.Helper()
	var path string
	l.do("screenshot", a, 0, &path)
	l.t.Log("screenshot:", path)
}

// do runs one command and stores its answer in value.
func (l *Lab) do(name string, a args, limit time.Duration, value any) {
	l.t.Helper()
	command := args{"do": name}
	for key, v := range a {
		command[key] = v
	}
	text, err := json.Marshal(command)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.in.Write(append(text, '\n')); err != nil {
		l.t.Fatalf("browser: %s: the driver has ended: %v", name, err)
	}
	if err := l.answer(limit+pageLimit, value); err != nil {
		l.t.Fatalf("browser: %v\nThe page: %s/error.png", err, l.Folder)
	}
}

// answer waits for the driver's next answer.
func (l *Lab) answer(limit time.Duration, value any) error {
	select {
	case a, ok := <-l.answers:
		switch {
		case !ok:
			return errors.New("the driver has ended")
		case a.Error != "":
			return errors.New(a.Error)
		case value == nil:
			return nil
		}
		return json.Unmarshal(a.Value, value)
	case <-time.After(limit):
		return fmt.Errorf("the driver has not answered within %v", limit)
	}
}

// read passes on the driver's answers until it ends.
func (l *Lab) read(out io.Reader) {
	defer close(l.answers)
	for lines := json.NewDecoder(bufio.NewReader(out)); ; {
		var a answer
		if err := lines.Decode(&a); err != nil {
			return
		}
		l.answers <- a
	}
}
