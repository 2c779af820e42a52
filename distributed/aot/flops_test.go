package aot

import "testing"

const convolution = `    %c = "stablehlo.convolution"(%x, %k) {
      batch_group_count = 1 : i64,
      dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,
      feature_group_count = 1 : i64,
      lhs_dilation = array<i64: 2, 1>,
      window_strides = array<i64: 1, 1>
    } : (tensor<64x28x28x8xbf16>, tensor<3x3x8x32xbf16>) -> tensor<64x28x28x32xbf16>
`

const dot = `    %d = "stablehlo.dot_general"(%a, %b) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [0],
  rhs_batching_dimensions = [0],
  lhs_contracting_dimensions = [1, 2],
  rhs_contracting_dimensions = [1, 2]
>
    } : (tensor<7x3x5x2xf32>, tensor<7x3x5x4xf32>) -> tensor<7x2x4xf32>
`

func TestFLOPs(t *testing.T) {
	const products, window = 2 * 7 * 2 * 4 * 15, 64 * 28 * 28 * 32 * 9 * 8 // Half of the window's elements are zeros between rows.
	end := func(name string) string { return `    "stablehlo.return"(` + name + ") : (tensor<f32>) -> ()" }
	for name, tt := range map[string]struct {
		body  string
		flops float64
		half  bool
	}{
		"a batched product":            {dot + end("%d"), products, false},
		"a dilated convolution":        {convolution + end("%c"), window, true},
		"both":                         {convolution + dot + `    "stablehlo.return"(%c, %d) : (tensor<f32>, tensor<f32>) -> ()`, window + products, true},
		"a result that nobody uses":    {convolution + dot + end("%d"), products, false},
		"a chain that nobody uses":     {convolution + "    %e = \"stablehlo.negate\"(%c) : (tensor<f32>) -> tensor<f32>\n" + end("%x"), 0, false},
		"the second of two results":    {convolution + "    %e, %f = \"stablehlo.batch_norm_training\"(%c, %x) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)\n" + dot + end("%f"), window, true},
		"two results that nobody uses": {dot + "    %e, %f = \"stablehlo.batch_norm_training\"(%d, %x) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)\n" + convolution + end("%c"), window, true},
		"two functions":                {convolution + end("%c") + "\n  }\n  func.func @f(%a: tensor<f32>) -> tensor<f32> {\n" + dot + end("%d"), window + products, true},
		"nothing":                      {end("%x"), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			flops, half := FLOPs("module @m {\n  func.func @main(%x: tensor<f32>) -> tensor<f32> {\n" + tt.body + "\n  }\n}\n")
			if flops != tt.flops || half != tt.half {
				t.Errorf("got %v and half precision %v, want %v and %v", flops, half, tt.flops, tt.half)
			}
		})
	}
}
