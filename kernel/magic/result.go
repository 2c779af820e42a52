package magic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/internal/rundir"
	"gonbatch/submit/report"
)

// resultPackage imports the package with the type of the values that %result RUN as NAME declares,
// under a name that cells don't use for something else.
const resultPackage = `gonbatch__result "gonbatch/submit/result"`

// result shows the results of a run, and with "as NAME" declares them for the following cells.
func (m *Magics) result(ctx context.Context, s Session, args string) error {
	name, variable, err := gocell.ResultArgs(args)
	if err != nil {
		return fmt.Errorf("%%result %s: %w", args, err)
	}
	job, err := m.jobOf(name)
	if err != nil {
		return fmt.Errorf("%%result: %w", err)
	}
	now, err := m.observe(job).look(ctx)
	if err != nil {
		return fmt.Errorf("%%result: %w", err)
	}
	found, err := readResult(now)
	if err != nil {
		return fmt.Errorf("%%result: %w", err)
	}
	if variable != "" {
		if now.Job.Dir == "" {
			return fmt.Errorf("%%result %s: the run has no run directory", args)
		}
		// An initializer runs in each cell's program, so it reads nothing until a cell asks for it.
		if err := s.Declare(resultPackage, fmt.Sprintf("var %s = gonbatch__result.At(%q)", variable, now.Job.Dir)); err != nil {
			return fmt.Errorf("%%result %s: %w", args, err)
		}
	}
	bundle, err := found.bundle(variable)
	if err != nil {
		return fmt.Errorf("%%result %s: %w", args, err)
	}
	s.Display(m.newID("gonbatch-result-"+now.Job.ID), bundle)
	return nil
}

// findings are the results of a run.
type findings struct {
	state
	checkpoints, images []string
}

func readResult(now state) (found findings, err error) {
	found.state = now
	if now.Job.Dir == "" {
		return found, nil
	}
	dir := rundir.At(now.Job.Dir)
	if found.checkpoints, err = dir.CheckpointFolders(); err != nil {
		return found, err
	}
	found.images, err = dir.ImageFiles()
	return found, err
}

// report returns the findings as submit would report them (docs/json.md).
func (f findings) report() report.Result {
	r := report.Result{
		Job: f.Job.ID, Run: f.Run.Run, State: f.Run.State, Message: f.Run.Message, Directory: f.Job.Dir, Step: f.Step,
		Metrics: map[string]any{}, Losses: map[string][][2]float64{},
		Checkpoints: append([]string{}, f.checkpoints...), Images: append([]string{}, f.images...),
		Measures: f.measures(), Title: f.title(),
	}
	for _, s := range f.Losses {
		pairs := make([][2]float64, len(s.Points))
		for i, p := range s.Points {
			pairs[i] = [2]float64{p.X, p.Y}
		}
		r.Losses[s.Name] = pairs
	}
	for name, value := range f.Metrics {
		r.Metrics[name] = jsonNumber(value)
	}
	return r
}

// resultType is the MIME type of a result as JSON. Front ends ignore it and keep it in the
// notebook.
const resultType = "application/vnd.gonbatch.result+json"

// bundle returns the findings as the notebook shows and keeps them.
func (f findings) bundle(variable string) (map[string]any, error) {
	var text, object bytes.Buffer
	if err := errors.Join(report.Write(&text, false, f.report()), report.Write(&object, true, f.report())); err != nil {
		return nil, err
	}
	lines := text.String() + inGo(variable)
	return map[string]any{"text/plain": strings.TrimSpace(lines), "text/html": f.html(variable), resultType: json.RawMessage(object.Bytes())}, nil
}

// inGo says how cells get the values.
func inGo(variable string) string {
	if variable == "" {
		return ""
	}
	return fmt.Sprintf("in Go: %s.Last(\"train/loss\"), %[1]s.Series(\"train/loss\"), %[1]s.Metrics(), %[1]s.Checkpoints(), %[1]s.Images()", variable)
}

func (f findings) html(variable string) string {
	return strings.Join([]string{
		fmt.Sprintf(`<div style="`+cardStyle+`">`, f.color()),
		htmlTitle(f.state),
		htmlMeasures(f.measures()),
		htmlPaths("checkpoints", f.Job.Dir, f.checkpoints),
		htmlPaths("images", f.Job.Dir, f.images),
		quiet(f.Job.Dir),
		quiet(inGo(variable)),
		"</div>",
	}, "")
}

// mostPaths is the maximum number of paths shown of each kind.
const mostPaths = 20

// htmlPaths lists paths in the run directory; only the last ones if there are many.
func htmlPaths(what, dir string, paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, `<div style="margin-top:6px"><b>%s</b>`, what)
	if more := len(paths) - mostPaths; more > 0 {
		fmt.Fprintf(&text, ` <span style="opacity:.7">the last %d of %d</span>`, mostPaths, len(paths))
		paths = paths[more:]
	}
	for _, path := range paths {
		fmt.Fprintf(&text, `<div style="`+quietStyle+`">%s</div>`, html.EscapeString(strings.TrimPrefix(path, dir+"/")))
	}
	return text.String() + "</div>"
}
