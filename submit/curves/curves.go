// Package curves draws how a metric of several runs developed.
//
//	err := curves.Draw("loss.png", "val/loss", []curves.Curve{{Name: "lr=0.1", Points: run.Series("val/loss")}})
package curves

import (
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"gonbatch/internal/rundir"
	"gonbatch/submit/result"
)

// Curve is the development of a metric in a run.
type Curve struct {
	Name   string
	Points result.Series
}

// Formats are the endings of files that Draw can write.
var Formats = []string{".png", ".svg", ".pdf", ".jpg"}

// mostNamed is how many curves a legend has room for, and logFrom the ratio of the largest to the
// smallest value from which the axis of values is logarithmic.
const (
	mostNamed = 24
	logFrom   = 20
)

// Draw writes a picture of the curves over the steps, in the format of the file's ending. It leaves
// out values that are not finite.
func Draw(path, metric string, all []Curve) error {
	format := strings.ToLower(filepath.Ext(path))
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("%s: the file must end with one of %s", path, strings.Join(Formats, ", "))
	}
	p := plot.New()
	p.X.Label.Text, p.Y.Label.Text = "step", metric
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	least, most := math.Inf(1), math.Inf(-1)
	for i, c := range all {
		var points plotter.XYs
		for _, at := range c.Points {
			if math.IsNaN(at.Value) || math.IsInf(at.Value, 0) {
				continue
			}
			points = append(points, plotter.XY{X: float64(at.Step), Y: at.Value})
			least, most = min(least, at.Value), max(most, at.Value)
		}
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Name, err)
		}
		line.Color, line.Width, line.Dashes = plotutil.Color(i), vg.Points(1.5), plotutil.Dashes(i/len(plotutil.DefaultColors))
		dots.Color, dots.Radius = line.Color, vg.Points(1.5)
		p.Add(line)
		if len(points) == 1 {
			p.Add(dots)
		}
		if len(all) <= mostNamed {
			p.Legend.Add(c.Name, line)
		}
	}
	if least > most {
		return fmt.Errorf("no run has a finite value of %s to draw", metric)
	}
	if len(all) <= mostNamed { // The legend is beside the curves.
		p.X.Max += 0.35 * (p.X.Max - p.X.Min)
	}
	if least > 0 && most/least >= logFrom {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	writer, err := p.WriterTo(20*vg.Centimeter, 12*vg.Centimeter, format[1:])
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	var data bytes.Buffer
	if _, err := writer.WriteTo(&data); err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return rundir.WriteFileAtomic(path, data.Bytes(), 0o644)
}
