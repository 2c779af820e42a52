package trainer

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// display shows rank 0's progress: a bar on a terminal, one line for each epoch in a notebook, the
// last of which is updated in place, and occasional lines in a log.
type display struct {
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

func newDisplay(out io.Writer, isMain, inRun bool) *display {
	if !isMain {
		return &display{}
	}
	return &display{out: out, inRun: inRun}
}

func (d *display) start(t *Trainer, r *run) {
	d.since = time.Now()
	if d.out == nil {
		return
	}
	file, isFile := d.out.(*os.File)
	switch {
	case isFile && term.IsTerminal(int(file.Fd())):
		total := product(r.plan.updates, r.plan.perUpdate)
		if total == 0 {
			total = -1
		}
		d.bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetWidth(24), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionShowCount(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish(), progressbar.OptionFullWidth())
		_ = d.bar.Set64(r.batchesDone())
	case isFile && gonbui.IsNotebook:
		d.notebook = gonbui.UniqueId()
		d.lines = d.inRun
	default:
		d.lines = true
	}
}

// end leaves the last line on the screen.
func (d *display) end() {
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

func (d *display) batch(r *run) {
	if d.bar != nil {
		d.bar.Describe(fmt.Sprintf("%sepoch %d  loss %.4f", r.label(), r.at.Epoch+1, r.loss))
		_ = d.bar.Set64(r.batchesDone())
	}
	if d.notebook != "" && time.Since(d.lastShown) >= showInterval {
		d.show(r, fmt.Sprintf("%s  loss %.4f  %s", r.place(), r.loss, r.left()))
	}
}

// rate returns the number of examples per second since the previous call.
func (d *display) rate(examples int) float64 {
	now := time.Now()
	rate := float64(examples) / now.Sub(d.since).Seconds()
	d.since = now
	return rate
}

// pause shows that something other than training is going on.
func (d *display) pause(what string) {
	if d.bar != nil {
		d.bar.Describe(what)
	}
}

// report prints a line with the newest metrics, if enough time has passed. In a notebook, the line
// of a finished epoch stays.
func (d *display) report(r *run) {
	d.begin(r.at.Epoch)
	d.trained = fmt.Sprintf("%s  loss %.4f  %.0f examples/s", r.place(), r.metrics["train/loss"], r.metrics["train/examples_per_second"])
	if share := 100 * r.metrics["train/data_wait"]; share >= 1 {
		d.trained += fmt.Sprintf("  %.0f%% waiting for data", share)
	}
	d.line, d.shown = strings.TrimRight(d.trained+"  "+r.left(), " "), false
	if d.notebook != "" && (r.atEpochEnd() || r.ended()) {
		d.show(r, d.trained+d.validated)
	}
	if !d.lines || time.Since(d.lastLine) < lineInterval && r.at.Batch != r.plan.batches {
		return
	}
	d.lastLine, d.shown = time.Now(), true
	fmt.Fprintln(d.out, d.line)
}

func (d *display) validation(r *run, values Metrics) {
	d.since = time.Now()
	text := fmt.Sprintf("%sepoch %d  step %d  %s", r.label(), r.at.Epoch+1, r.at.Step, values)
	d.line, d.shown = text, d.lines
	if d.lines {
		fmt.Fprintln(d.out, text)
	}
	d.begin(r.at.Epoch)
	d.validated = "  " + values.String()
	if d.notebook != "" {
		d.show(r, cmp.Or(d.trained, r.place())+d.validated)
	}
}

// begin drops the lines of an earlier epoch.
func (d *display) begin(epoch int) {
	if epoch != d.epoch {
		d.epoch, d.trained, d.validated = epoch, "", ""
	}
}

// show sets the epoch's line in the notebook.
func (d *display) show(r *run, line string) {
	d.lastShown = time.Now()
	d.epochs.put(r.at.Epoch, line)
	gonbui.UpdateHTML(d.notebook, `<pre style="`+lineStyle+`">`+html.EscapeString(d.epochs.String())+"</pre>")
}

// String returns the metrics sorted by name: "val/accuracy 0.9871, val/loss 0.0412".
func (m Metrics) String() string {
	parts := make([]string, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %.4f", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

// place returns the training's position: "epoch 1/2  step 100/1876", with its label.
func (r *run) place() string {
	epoch, step := fmt.Sprint(r.at.Epoch+1), fmt.Sprint(r.at.Step)
	if r.config.MaxEpochs > 0 {
		epoch += fmt.Sprintf("/%d", r.config.MaxEpochs)
	}
	if r.plan.updates > 0 {
		step += fmt.Sprintf("/%d", r.plan.updates)
	}
	return fmt.Sprintf("%sepoch %s  step %s", r.label(), epoch, step)
}

// left returns the time to the end, estimated from the speed of this Fit so far.
func (r *run) left() string {
	done := r.at.Step - r.firstStep
	if r.plan.updates == 0 || done < 1 {
		return ""
	}
	return remaining(time.Since(r.began), done, int64(r.plan.updates)-r.at.Step).Round(time.Second).String() + " left"
}

// remaining returns the time for the updates that are left, at the speed of those that are done.
func remaining(elapsed time.Duration, done, left int64) time.Duration {
	each := float64(elapsed) / float64(done)
	return time.Duration(min(each*float64(left), float64(longest)))
}

// longest is a century: much more doesn't fit into a time.Duration.
const longest = 100 * 365 * 24 * time.Hour

func (r *run) batchesDone() int64 { return int64(r.at.Epoch*r.plan.batches + r.at.Batch) }
