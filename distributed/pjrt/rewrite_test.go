package pjrt

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/stablehlo"
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

// rewriteText is rewrite for the text of a program with these collectives, by their names.
func rewriteText(t *testing.T, program string, l lowering, ranks int, all map[string]does) (string, int, error) {
	t.Helper()
	for name, d := range all {
		built := ranks
		if strings.Contains(name, "over_3") {
			built = 3
		}
		placeholders.Store(name, placeholder{d, built})
	}
	m, err := stablehlo.Parse(program)
	if err != nil {
		return program, 0, err
	}
	n, err := rewrite(m, l, ranks)
	return m.String(), n, err
}

// sums are the collectives of placeholderText.
var sums = map[string]does{"gonbatch_all_reduce_sum_over_4_0": {op: allReduce}, "gonbatch_all_reduce_sum_over_4_1": {op: allReduce}, "gonbatch_all_reduce_sum_over_3_1": {op: allReduce}}

func TestRewrite(t *testing.T) {
	got, count, err := rewriteText(t, placeholderText, customCall{}, 4, sums)
	if count != 2 || err != nil {
		t.Fatalf("%d functions rewritten, want 2; %v:\n%s", count, err, got)
	}
	for _, want := range []string{
		`%form = "stablehlo.constant"() { value = dense<[1, 1, 0, 0, 0, 0]> : tensor<6xi64> }`,
		`"stablehlo.custom_call"(%x, %after, %form) { call_target_name = "gonbatch_collective_2_over_4", `,
		": (tensor<2xf32>, tensor<f32>, tensor<6xi64>) -> tensor<2xf32>\n    \"stablehlo.return\"(%result) : (tensor<2xf32>) -> ()\n  }",
		": (tensor<3x4xf64>, tensor<f32>, tensor<6xi64>) -> tensor<3x4xf64>\n    \"stablehlo.return\"(%result) : (tensor<3x4xf64>) -> ()\n  }",
		`callee = @gonbatch_all_reduce_sum_over_4_0`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the program lacks %q:\n%s", want, got)
		}
	}
	main, _, _ := strings.Cut(placeholderText, "func.func @gonbatch")
	if !strings.HasPrefix(got, main) || !strings.HasSuffix(got, placeholderText[strings.Index(placeholderText, "  func.func @other"):]) {
		t.Errorf("other functions were changed:\n%s", got)
	}
}

// TestRewriteNative: the second all-reduce of a program waits for the first.
func TestRewriteNative(t *testing.T) {
	got, count, err := rewriteText(t, placeholderText, native{}, 4, sums)
	if count != 2 || err != nil {
		t.Fatalf("%d functions rewritten, want 2; %v:\n%s", count, err, got)
	}
	for _, want := range []string{
		`%result = "stablehlo.all_reduce"(%x) ({`,
		`replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64> } : (tensor<2xf32>) -> tensor<2xf32>`,
		`%ready = "stablehlo.select"(%always, %x, %zeros) : (tensor<i1>, tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>`,
		`%result = "stablehlo.all_reduce"(%ready) ({`,
		`%sum = "stablehlo.add"(%a, %b) : (tensor<f64>, tensor<f64>) -> tensor<f64>`,
	} {
		if strings.Count(got, want) != 1 {
			t.Errorf("the program does not have %q exactly once:\n%s", want, got)
		}
	}
	if all := collectivesOf([]byte(got)); !slices.Equal(all, []collective{{op: allReduce, dtype: 11, count: 2}, {op: allReduce, dtype: 12, count: 12}}) {
		t.Errorf("the program's collectives: %v", all)
	}
}

const shardedText = `module @step {
  func.func @gonbatch_all_gather_over_2_0(%x: tensor<3xbf16>, %after: tensor<f32>) -> tensor<6xbf16> {
    %0 = "stablehlo.concatenate"(%x, %x) {
      dimension = 0 : i64
    } : (tensor<3xbf16>, tensor<3xbf16>) -> tensor<6xbf16>
    "stablehlo.return"(%0) : (tensor<6xbf16>) -> ()
  }

  func.func @gonbatch_reduce_scatter_sum_over_2_1(%x: tensor<6xi64>, %after: tensor<bf16>) -> tensor<3xi64> {
    %0 = "stablehlo.slice"(%x) {
      limit_indices = array<i64: 3>
    } : (tensor<6xi64>) -> tensor<3xi64>
    "stablehlo.return"(%0) : (tensor<3xi64>) -> ()
  }
}
`

// TestRewriteSharded: all-gathers and reduce-scatters have results of other types than their
// values, and placeholders with bodies in which braces end too.
func TestRewriteSharded(t *testing.T) {
	tests := map[string]struct {
		lowering lowering
		want     []string
	}{
		"custom call": {customCall{}, []string{
			`value = dense<[3, 0, 0, 0, 0, 0]>`, `value = dense<[5, 0, 0, 0, 0, 0]>`,
			`api_version = 4 : i32, has_side_effect = true, backend_config = {}, output_operand_aliases = [] } : (tensor<3xbf16>, tensor<f32>, tensor<6xi64>) -> tensor<6xbf16>`,
			`api_version = 4 : i32, has_side_effect = true, backend_config = {}, output_operand_aliases = [] } : (tensor<6xi64>, tensor<bf16>, tensor<6xi64>) -> tensor<3xi64>`,
			"(%result) : (tensor<6xbf16>) -> ()\n  }\n\n  func.func",
			"(%result) : (tensor<3xi64>) -> ()\n  }\n}\n",
		}},
		"native": {native{}, []string{
			`%result = "stablehlo.all_gather"(%x) { all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64> } : (tensor<3xbf16>) -> tensor<6xbf16>`,
			`%result = "stablehlo.reduce_scatter"(%ready) ({`,
			`}) { scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64> } : (tensor<6xi64>) -> tensor<3xi64>`,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, count, err := rewriteText(t, shardedText, test.lowering, 2, map[string]does{"gonbatch_all_gather_over_2_0": {op: allGather}, "gonbatch_reduce_scatter_sum_over_2_1": {op: reduceScatter}})
			if count != 2 || err != nil || strings.Contains(got, "concatenate") {
				t.Fatalf("%d functions rewritten, want 2; %v:\n%s", count, err, got)
			}
			for _, want := range test.want {
				if strings.Count(got, want) != 1 {
					t.Errorf("the program does not have %q exactly once:\n%s", want, got)
				}
			}
		})
	}
}

func TestCollectivesOf(t *testing.T) {
	tests := []struct {
		parameter string
		want      collective
	}{
		{"tensor<f32>", collective{allReduce, 11, 1, 0}}, {"tensor<0xf64>", collective{allReduce, 12, 0, 0}}, {"tensor<2x3x4xi32>", collective{allReduce, 4, 24, 0}},
		{"tensor<421642xi64>", collective{allReduce, 5, 421642, 0}}, {"tensor<12xbf16>", collective{allGather, 16, 12, 0}}, {"tensor<12xf16>", collective{allGather, 10, 12, 0}},
		{"tensor<12xf32>", collective{reduceScatter, 11, 6, 0}},
	}
	for _, test := range tests {
		d := does{op: test.want.op}
		placeholders.Store(d.name(2)+"_7", placeholder{d, 2})
		program := "func.func private @" + d.name(2) + "_7(%x.1: " + test.parameter + ", %after: tensor<f32>) -> " + test.parameter + " {\n}\n"
		if got := collectivesOf([]byte(program)); !slices.Equal(got, []collective{test.want}) {
			t.Errorf("%s: %v, want %v", test.parameter, got, test.want)
		}
	}
	if got := collectivesOf([]byte("func.func @other(%x: tensor<2xf32>) -> () {\n}\n")); got != nil {
		t.Errorf("another function: %v", got)
	}
}

func TestRewriteLeavesOthersAlone(t *testing.T) {
	program := "module @m {\n  func.func @main() -> tensor<f32> {\n  }\n}\n"
	if got, count, err := rewriteText(t, program, customCall{}, 4, sums); got != program || count != 0 || err != nil {
		t.Errorf("changed %d functions, %v:\n%s", count, err, got)
	}
}

// TestRewriteRefuses: a remaining placeholder is noticed, whatever form go-xla gives it.
func TestRewriteRefuses(t *testing.T) {
	tests := []struct{ name, from, to, want string }{
		{"another kind of function", "func.func @gonbatch", "func.private_func @gonbatch", "unknown text before function @other"},
		{"a type of another form", "%x: tensor<3x4xf64>", "%x: buffer<3x4xf64>", "has 2 collectives, but 1 would reach XLA"},
		{"more parameters", "sum_over_4_0(%x", "sum_over_4_0(%more: tensor<f32>, %x", "has 2 collectives, but 1 would reach XLA"},
		{"a call of another name", "callee = @gonbatch_all_reduce_sum_over_4_0", "callee = @gonbatch_all_reduce_sum_over_4_0_inlined", "has 3 collectives, but 2"},
		{"another number of ranks", "over_4_1", "over_3_1", "gonbatch_all_reduce_sum_over_3_1 was built for another number of ranks than this job's 4"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			program := strings.ReplaceAll(placeholderText, test.from, test.to)
			if _, _, err := rewriteText(t, program, customCall{}, 4, sums); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// TestUnreadRefused: a placeholder is noticed in a program that can't be read, too, and a program
// without one is compiled as it is.
func TestUnreadRefused(t *testing.T) {
	placeholders.Store("gonbatch_all_reduce_sum_over_4_0", placeholder{does{op: allReduce}, 4})
	for _, program := range []string{
		"ML\xefR\x00\x01gonbatch_all_reduce_sum_over_4_0\x00", "module @m {\n  func.func @main() -> () {\n    call @gonbatch_all_reduce_sum_over_4_0()\n  }\n}\n",
	} {
		if _, err := rewritten(program); err == nil || !strings.Contains(err.Error(), "has 1 collectives, but 0 would reach XLA") {
			t.Errorf("%q: got %v", program, err)
		}
		if _, err := rewritten(strings.ReplaceAll(program, "gonbatch", "other")); !errors.Is(err, errUnchanged) {
			t.Errorf("%q without: got %v", program, err)
		}
	}
}

const splitText = `module @step {
  func.func @gonbatch_start_all_reduce_sum_over_2_0(%x: tensor<3xf32>, %after: tensor<f64>) -> (tensor<3xf32>, tensor<f64>) {
    "stablehlo.return"(%x, %after) : (tensor<3xf32>, tensor<f64>) -> ()
  }

  func.func @gonbatch_finish_all_reduce_sum_over_2_1(%x: tensor<3xf32>, %after: tensor<f64>) -> (tensor<3xf32>, tensor<f64>) {
    "stablehlo.return"(%x, %after) : (tensor<3xf32>, tensor<f64>) -> ()
  }
}
`

// TestRewriteSplit: both halves of a sum have two results, and the first has the operand's memory.
func TestRewriteSplit(t *testing.T) {
	got, count, err := rewriteText(t, splitText, customCall{}, 2, map[string]does{"gonbatch_start_all_reduce_sum_over_2_0": {op: allReduce, part: start}, "gonbatch_finish_all_reduce_sum_over_2_1": {op: allReduce, part: finish}})
	if count != 2 || err != nil {
		t.Fatalf("%d functions rewritten, want 2; %v:\n%s", count, err, got)
	}
	for _, half := range []string{"start", "finish"} {
		want := `%result, %done = "stablehlo.custom_call"(%x, %after) { call_target_name = "gonbatch_` + half + `_all_reduce_sum_over_2", api_version = 4 : i32, has_side_effect = true, backend_config = {}, ` +
			"output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>] } : " +
			"(tensor<3xf32>, tensor<f64>) -> (tensor<3xf32>, tensor<f64>)\n    \"stablehlo.return\"(%result, %done) : (tensor<3xf32>, tensor<f64>) -> ()\n  }"
		if strings.Count(got, want) != 1 {
			t.Errorf("the program does not have %q exactly once:\n%s", want, got)
		}
	}
}
