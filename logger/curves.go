package logger

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/plotter"

	"gonbatch/internal/rundir"
	"gonbatch/logger/drawing"
)

// CurvesOptions says where to draw curves.
type CurvesOptions struct {
	// Dir is the folder of the PNG files. It is created if it is missing.
	Dir string
	// History is a file of JSONLines whose metrics begin the curves, so that the curves of a
	// resumed training are complete. If it is unset or missing, the curves begin empty.
	History string
	// Training selects the lines of History: those of the training with that name or, if it is
	// unset, those without a name.
	Training string
	// Every is the minimum time between drawings. Default: 10 s.
	Every time.Duration
}

// Curves draws metrics as PNG files, one for each family of metrics: those with the same name after
// the last slash. For example, loss.png has the curves train/loss and val/loss. A file is replaced
// atomically, at most every few seconds, and by Close. Curves writes images as
// images/NAME/step-N.png, and ignores everything else.
//
// If a training run logs a step again, as after a return to a checkpoint, a curve loses its points
// from that step on.
type Curves struct {
	record
	o      CurvesOptions
	points map[string]plotter.XYs // by metric, steps ascending
	dirty  map[string]bool        // families to draw
	drawn  time.Time
	now    func() time.Time
}

var (
	_ Logger   = (*Curves)(nil)
	_ Rewinder = (*Curves)(nil)
)

// NewCurves opens the folder and reads the history.
func NewCurves(o CurvesOptions) (*Curves, error) {
	if o.Every == 0 {
		o.Every = 10 * time.Second
	}
	l := &Curves{o: o, points: map[string]plotter.XYs{}, dirty: map[string]bool{}, now: time.Now}
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("logger: curves: %w", err)
	}
	if err := l.readHistory(); err != nil {
		return nil, fmt.Errorf("logger: curves: history: %w", err)
	}
	return l, nil
}

func (l *Curves) readHistory() error {
	if l.o.History == "" {
		return nil
	}
	all, err := rundir.ReadMetricsFile(l.o.History)
	for _, m := range all {
		if m.Training == l.o.Training {
			l.addAll(m.Step, m.Values)
		}
	}
	return err
}

func (l *Curves) addAll(step int64, values map[string]float64) {
	for name, value := range values {
		l.add(step, name, value)
	}
}

// add adds a point to a curve, unless it can't be drawn.
func (l *Curves) add(step int64, name string, value float64) {
	points := l.points[name]
	for len(points) > 0 && points[len(points)-1].X >= float64(step) {
		points = points[:len(points)-1]
	}
	if math.Abs(value) <= drawing.Largest {
		points = append(points, plotter.XY{X: float64(step), Y: value})
	}
	l.points[name] = points
	l.dirty[family(name)] = true
}

// Rewind removes the points of later steps.
func (l *Curves) Rewind(step int64) error {
	return l.do(fmt.Sprintf("curves: go back to step %d", step), func() error {
		for name, points := range l.points {
			first, _ := slices.BinarySearchFunc(points, float64(step)+1, func(p plotter.XY, x float64) int { return cmp.Compare(p.X, x) })
			if first < len(points) {
				l.points[name] = points[:first]
				l.dirty[family(name)] = true
			}
		}
		return nil
	})
}

// family returns the name of the file in which a metric is drawn.
func family(name string) string { return fileName(name[strings.LastIndex(name, "/")+1:]) }

// fileName replaces the characters in a name that a file name must not contain.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '/' || r < ' ' {
			return '_'
		}
		return r
	}, name)
	if strings.Trim(name, ".") == "" {
		name += "_"
	}
	return name
}

// Scalars adds points, and draws them if enough time has passed since the last drawing.
func (l *Curves) Scalars(step int64, values map[string]float64) error {
	return l.do("curves in "+l.o.Dir, func() error {
		l.addAll(step, values)
		if now := l.now(); now.Sub(l.drawn) >= l.o.Every {
			l.drawn = now
			return l.draw()
		}
		return nil
	})
}

// draw draws the families that have changed.
func (l *Curves) draw() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(l.dirty)) {
		picture := drawing.Picture{Title: name}
		for _, metric := range slices.Sorted(maps.Keys(l.points)) {
			if points := l.points[metric]; family(metric) == name && len(points) > 0 {
				picture.Curves = append(picture.Curves, drawing.Curve{Name: metric, Points: points})
			}
		}
		if len(picture.Curves) > 0 {
			errs = append(errs, picture.Write(filepath.Join(l.o.Dir, name+".png")))
		}
		delete(l.dirty, name)
	}
	return errors.Join(errs...)
}

// Image writes an image.
func (l *Curves) Image(step int64, name string, img image.Image) error {
	return l.do(fmt.Sprintf("image %s of step %d", name, step), func() error {
		var text bytes.Buffer
		if err := png.Encode(&text, img); err != nil {
			return err
		}
		path := rundir.ImagePath(l.o.Dir, fileName(name), step)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		return rundir.WriteFileAtomic(path, text.Bytes(), 0o644)
	})
}

// Close draws the families that have changed.
func (l *Curves) Close() error { return l.end("curves in "+l.o.Dir, l.draw) }
