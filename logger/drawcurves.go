package logger

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"gonbatch/internal/rundir"
)

// The size of a drawing, and the maximum number of points in a curve: if there are more, they are
// averaged.
const (
	curveWidth  = 8 * vg.Inch
	curveHeight = 5 * vg.Inch
	curvePoints = 1000
)

// drawCurves writes a PNG with one line per metric.
func drawCurves(path, title string, curves map[string]plotter.XYs) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text = title, "step"
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	for i, name := range slices.Sorted(maps.Keys(curves)) {
		line, points, err := plotter.NewLinePoints(thinned(curves[name], curvePoints))
		if err != nil {
			return fmt.Errorf("curve %s: %w", name, err)
		}
		line.Color, points.Color, points.Radius = plotutil.Color(i), plotutil.Color(i), vg.Points(1)
		p.Add(line, points)
		p.Legend.Add(name, line)
	}
	widen(&p.Y)
	writer, err := p.WriterTo(curveWidth, curveHeight, "png")
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
