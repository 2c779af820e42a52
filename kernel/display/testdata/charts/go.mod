module charts

go 1.26.5

require (
	github.com/MetalBlueberry/go-plotly v0.7.0
	github.com/go-echarts/go-echarts/v2 v2.6.7
	gonbatch v0.0.0-00010101000000-000000000000
)

replace gonbatch => ../../../..
