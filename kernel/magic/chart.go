package magic

import (
	"fmt"
	"html"
	"math"
	"strings"
)

const (
	// The size of the plot area of the loss curves, and of the margins around it.
	chartWidth, chartHeight                      = 600.0, 130.0
	chartLeft, chartRight, chartTop, chartBottom = 56.0, 16.0, 8.0, 20.0
	chartWhole, chartTall                        = chartLeft + chartWidth + chartRight, chartTop + chartHeight + chartBottom
	// chartPoints is the maximum number of points in a curve.
	chartPoints = 240
	// logarithmic is the ratio of the largest to the smallest value from which the axis is
	// logarithmic.
	logarithmic = 8
)

// chartColors can be distinguished on white and on black.
var chartColors = [mostSeries]string{"#3b82d6", "#e07b1a", "#3fa34d", "#b565c9"}

// chart maps values to positions in the plot area.
type chart struct {
	minX, maxX, minY, maxY float64
	log                    bool
}

// newChart returns a chart with room for all points of the series.
func newChart(all []series) chart {
	c := chart{minX: math.Inf(1), maxX: math.Inf(-1), minY: math.Inf(1), maxY: math.Inf(-1)}
	for _, s := range all {
		for _, p := range s.Points {
			c.minX, c.maxX = min(c.minX, p.X), max(c.maxX, p.X)
			c.minY, c.maxY = min(c.minY, p.Y), max(c.maxY, p.Y)
		}
	}
	c.log = c.minY > 0 && c.maxY/c.minY >= logarithmic
	if c.maxX == c.minX {
		c.maxX++
	}
	if c.maxY == c.minY {
		c.minY, c.maxY = c.minY-0.5, c.maxY+0.5
	}
	return c
}

func (c chart) x(v float64) float64 { return chartLeft + (v-c.minX)/(c.maxX-c.minX)*chartWidth }

func (c chart) y(v float64) float64 {
	low, high := c.minY, c.maxY
	if c.log {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return chartTop + (high-v)/(high-low)*chartHeight
}

// middle returns the value in the middle of the axis.
func (c chart) middle() float64 {
	if c.log {
		return math.Sqrt(c.minY * c.maxY)
	}
	return (c.minY + c.maxY) / 2
}

// draw draws series and their legend as SVG, in the page's own color and font. Without series it
// returns "".
func draw(all []series) string {
	if len(all) == 0 {
		return ""
	}
	c := newChart(all)
	var text strings.Builder
	// On a narrow page, the whole chart is scaled down.
	fmt.Fprintf(&text, `<svg viewBox="0 0 %g %g" style="display:block;width:100%%;max-width:%gpx;height:auto;margin:6px 0 2px" role="img" aria-label="loss">`,
		chartWhole, chartTall, chartWhole)
	text.WriteString(`<g fill="currentColor" font-size="11" opacity="0.7">`)
	for _, v := range []float64{c.maxY, c.middle(), c.minY} {
		fmt.Fprintf(&text, `<path d="M%g %.1fh%g" stroke="currentColor" stroke-opacity="0.25" fill="none"/>`, chartLeft, c.y(v), chartWidth)
		fmt.Fprintf(&text, `<text x="%g" y="%.1f" text-anchor="end">%.3g</text>`, chartLeft-6, c.y(v)+4, v)
	}
	for _, at := range []struct {
		x      float64
		anchor string
		text   string
	}{
		{c.minX, "start", fmt.Sprintf("%.0f", c.minX)}, {(c.minX + c.maxX) / 2, "middle", "step"}, {c.maxX, "end", fmt.Sprintf("%.0f", c.maxX)},
	} {
		fmt.Fprintf(&text, `<text x="%.1f" y="%g" text-anchor="%s">%s</text>`, c.x(at.x), chartTall-4, at.anchor, at.text)
	}
	text.WriteString("</g>")
	for i, s := range all {
		fmt.Fprintf(&text, `<polyline fill="none" stroke="%s" stroke-width="1.6" stroke-linejoin="round" points="%s"/>`, chartColors[i], c.points(s.Points))
	}
	return text.String() + "</svg>" + legend(all)
}

// points returns the points of a curve; if there are too many, a sample, which always includes the
// last one.
func (c chart) points(all []point) string {
	count := min(len(all), chartPoints)
	parts := make([]string, count)
	for i := range count {
		p := all[i*(len(all)-1)/(count-1)]
		parts[i] = fmt.Sprintf("%.1f,%.1f", c.x(p.X), c.y(p.Y))
	}
	return strings.Join(parts, " ")
}

func legend(all []series) string {
	var text strings.Builder
	fmt.Fprintf(&text, `<div style="display:flex;flex-wrap:wrap;gap:2px 14px;padding-left:%gpx;font-size:12px">`, chartLeft)
	for i, s := range all {
		fmt.Fprintf(&text, `<span><span style="display:inline-block;width:14px;height:3px;vertical-align:middle;margin-right:5px;background:%s"></span>%s</span>`,
			chartColors[i], html.EscapeString(s.Name))
	}
	return text.String() + "</div>"
}
