// Package drawing draws curves of metrics.
//
//	picture := drawing.Picture{Title: "loss", Curves: []drawing.Curve{{Name: "train/loss", Points: points}}}
//	err := picture.Write("loss.png")
package drawing

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
)

// Picture has curves over the steps.
type Picture struct {
	// Title and Values are the texts above the curves and beside their values; both may be "".
	Title, Values string
	Curves        []Curve
	// Wide leaves a place for the legend beside the curves, and makes the axis of values
	// logarithmic if they differ much.
	Wide bool
}

// Curve is a line of a picture. Its values must be below Largest.
type Curve struct {
	Name   string
	Points plotter.XYs
}

// Largest limits the values in a curve, so that their range can't overflow.
const Largest = 1e300

// Formats are the endings of files that Write can write.
var Formats = []string{".png", ".svg", ".pdf", ".jpg"}

const (
	width  = 8 * vg.Inch
	height = 5 * vg.Inch
	// mostPoints is the maximum number of points in a curve: if there are more, they are averaged.
	mostPoints = 1000
	// mostNamed is how many curves the legend has room for.
	mostNamed = 24
	// logFrom is the ratio of the largest to the smallest value from which they differ much.
	logFrom = 20
)

// Write writes the picture, in the format of the file's ending.
func (pic Picture) Write(path string) error {
	format := strings.ToLower(filepath.Ext(path))
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("%s: the file must end with one of %s", path, strings.Join(Formats, ", "))
	}
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = pic.Title, "step", pic.Values
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, c := range pic.Curves {
		line, points, err := plotter.NewLinePoints(thinned(c.Points, mostPoints))
		if err != nil {
			return fmt.Errorf("curve %s: %w", c.Name, err)
		}
		line.Color, line.Dashes = plotutil.Color(i), plotutil.Dashes(i/len(plotutil.DefaultColors))
		points.Color, points.Radius = line.Color, vg.Points(1)
		p.Add(line, points)
		if len(pic.Curves) <= mostNamed {
			p.Legend.Add(c.Name, line)
		}
	}
	widen(&p.Y)
	if pic.Wide {
		p.X.Max += 0.35 * (p.X.Max - p.X.Min)
	}
	if pic.Wide && p.Y.Min > 0 && p.Y.Max/p.Y.Min >= logFrom {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	writer, err := p.WriterTo(width, height, format[1:])
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	var text bytes.Buffer
	if _, err := writer.WriteTo(&text); err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return rundir.WriteFileAtomic(path, text.Bytes(), 0o644)
}

// widen makes room around a single value. The plot itself adds 1 on each side, which has no effect
// above 2^53, and then panics.
func widen(axis *plot.Axis) {
	if room := math.Abs(axis.Max) / 10; axis.Max == axis.Min && room > 1 {
		axis.Min, axis.Max = axis.Min-room, axis.Max+room
	}
}

// thinned averages neighboring points, so that at most limit points are left.
func thinned(points plotter.XYs, limit int) plotter.XYs {
	if len(points) <= limit {
		return points
	}
	var out plotter.XYs
	for i := range limit {
		group := points[i*len(points)/limit : (i+1)*len(points)/limit]
		var mean plotter.XY
		for _, p := range group {
			mean.X += p.X / float64(len(group))
			mean.Y += p.Y / float64(len(group))
		}
		out = append(out, mean)
	}
	return out
}
