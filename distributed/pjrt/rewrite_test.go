package pjrt

import (
	"strings"
	"testing"
)

const placeholderText = `module @step {
  func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.constant"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>
    %1 = "func.call"(%arg0, %0) { callee = @gonbatch_all_reduce_sum_over_4_0 } : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    "stablehlo.return"(%1) : (tensor<2xf32>) -> ()
  }

  func.func @gonbatch_all_reduce_sum_over_4_0(%x: tensor<2xf32>, %after: tensor<f32>) -> tensor<2xf32> {
    "stablehlo.return"(%x) : (tensor<2xf32>) -> ()
  }

  func.func @gonbatch_all_reduce_sum_over_4_1(%x: tensor<3x4xf64>, %after: tensor<f32>) -> tensor<3x4xf64> {
    "stablehlo.return"(%x) : (tensor<3x4xf64>) -> ()
  }

  func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> {
    "stablehlo.return"(%x) : (tensor<2xf32>) -> ()
  }
}
`

func TestRewrite(t *testing.T) {
	got, count := rewrite(placeholderText)
	if count != 2 {
		t.Fatalf("%d functions rewritten, want 2:\n%s", count, got)
	}
	for _, want := range []string{
		"stablehlo.custom_call @gonbatch_all_reduce_sum_over_4(%x, %after)",
		": (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>\n    return %reduced : tensor<2xf32>\n  }",
		": (tensor<3x4xf64>, tensor<f32>) -> tensor<3x4xf64>\n    return %reduced : tensor<3x4xf64>\n  }",
		`callee = @gonbatch_all_reduce_sum_over_4_0`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
	main, _, _ := strings.Cut(placeholderText, "func.func @gonbatch")
	if !strings.HasPrefix(got, main) || !strings.HasSuffix(got, placeholderText[strings.Index(placeholderText, "  func.func @other"):]) {
		t.Errorf("other functions were changed:\n%s", got)
	}
}

func TestRewriteLeavesOthersAlone(t *testing.T) {
	program := "module @m {\n  func.func @main() -> tensor<f32> {\n  }\n}\n"
	if got, count := rewrite(program); got != program || count != 0 {
		t.Errorf("changed %d functions:\n%s", count, got)
	}
}
