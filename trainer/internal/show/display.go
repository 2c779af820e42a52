// Package show shows the progress of a training run.
package show

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// Display shows rank 0's progress: a bar on a terminal, one line for each epoch in a notebook, the
// last of which is updated in place, and occasional lines in a log.
type Display struct {
	out      io.Writer // Nil on other ranks.
	bar      *progressbar.ProgressBar
	notebook string // The id of the display in the notebook.
	epochs   epochLines
	lines    bool
	inRun    bool // The output is logged in a run directory.

	lastLine  time.Time
	lastShown time.Time
	since     time.Time // When the rate was last computed.
	line      string
	shown     bool // The line is in the log.
	// trained is the text of the epoch's last report, and validated that of its last validation.
	epoch              int
	trained, validated string
}

const (
	// lineInterval is the minimum time between two lines in a log. The end of an epoch always gets
	// one.
	lineInterval = 2 * time.Second
	// showInterval is the minimum time between two updates in a notebook.
	showInterval = 500 * time.Millisecond
	// lineStyle makes the line look like the program's other output in JupyterLab, whose CSS
	// variables it uses; elsewhere it has little effect.
	lineStyle = "margin:0;padding:0 var(--jp-code-padding,0);font-size:var(--jp-code-font-size,inherit);line-height:var(--jp-code-line-height,inherit)"
)

// View is where a training run is.
type View struct {
	Label     string // Begins the lines, to tell those of several training runs apart.
	Epoch     int    // From 0.
	MaxEpochs int    // 0: no limit.
	Batches   int64  // That are done, in all epochs.
	Step      int64  // Updates that are done.
	Updates   int    // Of the whole training run; 0 if that isn't known.
	PerUpdate int    // Batches.
	Loss      float64
	Trained   int64     // Updates of this Fit,
	Began     time.Time // which began then.
	EpochEnds bool      // All batches of the epoch are done.
	Ends      bool      // So are all of the training run.
}

// New returns a display on out. Ranks other than the main one show nothing.
func New(out io.Writer, isMain, inRun bool) *Display {
	if !isMain {
		return &Display{}
	}
	return &Display{out: out, inRun: inRun}
}

// Start begins to show a training run.
func (d *Display) Start(v View) {
	d.since = time.Now()
	if d.out == nil {
		return
	}
	file, isFile := d.out.(*os.File)
	switch {
	case isFile && term.IsTerminal(int(file.Fd())):
		total := -1
		if v.Updates > 0 && v.Updates <= math.MaxInt/v.PerUpdate {
			total = v.Updates * v.PerUpdate
		}
		d.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetWidth(24), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
		_ = d.bar.Set64(v.Batches)
	case isFile && gonbui.IsNotebook:
		d.notebook = gonbui.UniqueId()
		d.lines = d.inRun
	default:
		d.lines = true
	}
}

// End leaves the last line on the screen.
func (d *Display) End() {
	if d.bar != nil {
		_ = d.bar.Finish()
		if d.line != "" {
			fmt.Fprintln(d.out, d.line)
		}
	}
	if d.lines && d.line != "" && !d.shown {
		fmt.Fprintln(d.out, d.line)
	}
	if d.notebook != "" {
		gonbui.Sync()
	}
	d.bar, d.notebook, d.lines = nil, "", false
}

// Batch shows a batch.
func (d *Display) Batch(v View) {
	if d.bar != nil {
		d.bar.Describe(fmt.Sprintf("%sepoch %d  loss %.4f", v.Label, v.Epoch+1, v.Loss))
		_ = d.bar.Set64(v.Batches)
	}
	if d.notebook != "" && time.Since(d.lastShown) >= showInterval {
		d.show(v, fmt.Sprintf("%s  loss %.4f  %s", v.place(), v.Loss, v.left()))
	}
}

// Rate returns the number of examples per second since the previous call.
func (d *Display) Rate(examples int) float64 {
	now := time.Now()
	rate := float64(examples) / now.Sub(d.since).Seconds()
	d.since = now
	return rate
}

// Pause shows that something other than training is going on.
func (d *Display) Pause(what string) {
	if d.bar != nil {
		d.bar.Describe(what)
	}
}

// Report prints a line with the mean loss since the last report, the speed, and the share of the
// time in which the devices waited for data, if enough time has passed. In a notebook, the line of
// a finished epoch stays.
func (d *Display) Report(v View, loss, examplesPerSecond, dataWait float64) {
	d.begin(v.Epoch)
	d.trained = fmt.Sprintf("%s  loss %.4f  %.0f examples/s", v.place(), loss, examplesPerSecond)
	if share := 100 * dataWait; share >= 1 {
		d.trained += fmt.Sprintf("  %.0f%% waiting for data", share)
	}
	d.line, d.shown = strings.TrimRight(d.trained+"  "+v.left(), " "), false
	if d.notebook != "" && (v.EpochEnds || v.Ends) {
		d.show(v, d.trained+d.validated)
	}
	if !d.lines || time.Since(d.lastLine) < lineInterval && !v.EpochEnds {
		return
	}
	d.lastLine, d.shown = time.Now(), true
	fmt.Fprintln(d.out, d.line)
}

// Validation shows the metrics of a validation.
func (d *Display) Validation(v View, metrics string) {
	d.since = time.Now()
	text := fmt.Sprintf("%sepoch %d  step %d  %s", v.Label, v.Epoch+1, v.Step, metrics)
	d.line, d.shown = text, d.lines
	if d.lines {
		fmt.Fprintln(d.out, text)
	}
	d.begin(v.Epoch)
	d.validated = "  " + metrics
	if d.notebook != "" {
		d.show(v, cmp.Or(d.trained, v.place())+d.validated)
	}
}

// begin drops the lines of an earlier epoch.
func (d *Display) begin(epoch int) {
	if epoch != d.epoch {
		d.epoch, d.trained, d.validated = epoch, "", ""
	}
}

// show sets the epoch's line in the notebook.
func (d *Display) show(v View, line string) {
	d.lastShown = time.Now()
	d.epochs.put(v.Epoch, line)
	gonbui.UpdateHTML(d.notebook, `<pre style="`+lineStyle+`">`+html.EscapeString(d.epochs.String())+"</pre>")
}

// place returns the training's position: "epoch 1/2  step 100/1876", with its label.
func (v View) place() string {
	epoch, step := fmt.Sprint(v.Epoch+1), fmt.Sprint(v.Step)
	if v.MaxEpochs > 0 {
		epoch += fmt.Sprintf("/%d", v.MaxEpochs)
	}
	if v.Updates > 0 {
		step += fmt.Sprintf("/%d", v.Updates)
	}
	return fmt.Sprintf("%sepoch %s  step %s", v.Label, epoch, step)
}

// left returns the time to the end, estimated from the speed of this Fit so far.
func (v View) left() string {
	if v.Updates == 0 || v.Trained < 1 {
		return ""
	}
	return remaining(time.Since(v.Began), v.Trained, int64(v.Updates)-v.Step).Round(time.Second).String() + " left"
}

// remaining returns the time for the updates that are left, at the speed of those that are done.
func remaining(elapsed time.Duration, done, left int64) time.Duration {
	each := float64(elapsed) / float64(done)
	return time.Duration(min(each*float64(left), float64(longest)))
}

// longest is a century: much more doesn't fit into a time.Duration.
const longest = 100 * 365 * 24 * time.Hour

// epochLines is the text that a notebook shows for a training run: one line for each of the last
// epochs.
type epochLines struct {
	lines   []string
	epoch   int // Of the last line.
	dropped int
}

// mostEpochLines is the maximum number of epochs shown: every update sends all lines again.
const mostEpochLines = 100

// put sets or replaces the line of an epoch.
func (e *epochLines) put(epoch int, line string) {
	if len(e.lines) > 0 && epoch == e.epoch {
		e.lines[len(e.lines)-1] = line
		return
	}
	e.epoch, e.lines = epoch, append(e.lines, line)
	if len(e.lines) > mostEpochLines {
		e.lines = e.lines[1:]
		e.dropped++
	}
}

// String returns the text of all lines.
func (e *epochLines) String() string {
	text := strings.Join(e.lines, "\n")
	if e.dropped > 0 {
		text = fmt.Sprintf("... %d earlier epochs\n", e.dropped) + text
	}
	return text
}
