// Command charts prints, for a value of each plotting library that display recognizes by its
// methods, the name of the library and the formats that display.Of returns, as JSON.
package main

import (
	"encoding/json"
	"os"

	grob "github.com/MetalBlueberry/go-plotly/generated/v2.31.1/graph_objects"
	"github.com/MetalBlueberry/go-plotly/pkg/types"
	"github.com/go-echarts/go-echarts/v2/charts"
	"github.com/go-echarts/go-echarts/v2/components"
	"github.com/go-echarts/go-echarts/v2/opts"

	"gonbatch/kernel/display"
)

func main() {
	bar := charts.NewBar()
	bar.SetXAxis([]string{"first", "second"}).AddSeries("series", []opts.BarData{{Value: 1}, {Value: 2}})
	page := components.NewPage()
	page.AddCharts(bar)
	figure := &grob.Fig{
		Data:   []types.Trace{&grob.Bar{X: types.DataArray([]float64{1, 2}), Y: types.DataArray([]float64{3, 4})}},
		Layout: &grob.Layout{},
	}
	bundles := map[string]display.Bundle{"chart": display.Of(bar), "page": display.Of(page), "figure": display.Of(figure)}
	if err := json.NewEncoder(os.Stdout).Encode(bundles); err != nil {
		panic(err)
	}
}
