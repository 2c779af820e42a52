package main

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"gonbatch/internal/rundir"
)

// draw writes a picture of the forecasts: the efficiency over the number of ranks. A network has a
// color, and a link has a pattern of dashes.
func (r scalingReport) draw(path string) error {
	p := plot.New()
	p.Title.Text = "Efficiency of a training step, forecast by the model"
	p.X.Label.Text, p.Y.Label.Text = "ranks", "efficiency, %"
	most := bits.Len(largestWorld) - 1
	p.X.Tick.Marker, p.X.Max = powersOfTwo(most), 1.6*float64(most) // The legend is beside the curves.
	p.Y.Min, p.Y.Max = 0, 105
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs, p.Legend.Padding = true, true, 13*vg.Centimeter, vg.Points(3)
	p.Legend.TextStyle.Font.Size = vg.Points(10)
	p.Add(plotter.NewGrid())
	for i, f := range r.Carried {
		line, err := plotter.NewLine(f.efficiency())
		if err != nil {
			return fmt.Errorf("draw %s on %s: %w", f.Network, f.Link, err)
		}
		line.Color, line.Dashes, line.Width = plotutil.Color(i/len(r.Assumed)), plotutil.Dashes(i%len(r.Assumed)), vg.Points(1.5)
		p.Add(line)
		p.Legend.Add(f.Network+", "+f.Link, line)
	}
	writer, err := p.WriterTo(22*vg.Centimeter, 12*vg.Centimeter, "svg")
	if err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	var text bytes.Buffer
	if _, err := writer.WriteTo(&text); err != nil {
		return fmt.Errorf("draw %s: %w", path, err)
	}
	return rundir.WriteFileAtomic(path, text.Bytes(), 0o644)
}

// efficiency returns the points of a curve. The x axis is logarithmic.
func (f scalingForecast) efficiency() plotter.XYs {
	points := make(plotter.XYs, len(f.Ranks))
	for i, ranks := range f.Ranks {
		points[i] = plotter.XY{X: math.Log2(float64(ranks)), Y: 100 * f.Millis[0] / f.Millis[i]}
	}
	return points
}

// powersOfTwo are the ticks of an axis up to this power.
type powersOfTwo int

func (p powersOfTwo) Ticks(_, _ float64) (ticks []plot.Tick) {
	for x := range int(p) + 1 {
		ticks = append(ticks, plot.Tick{Value: float64(x), Label: strconv.Itoa(1 << x)})
	}
	return ticks
}
