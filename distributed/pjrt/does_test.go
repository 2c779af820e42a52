package pjrt

import (
	"strings"
	"testing"
)

// TestNames: the name of a placeholder says all that its collective does, so that programs with
// different ones differ.
func TestNames(t *testing.T) {
	tests := map[string]does{
		"gonbatch_all_reduce_sum_over_4_0":                               {op: allReduce},
		"gonbatch_all_reduce_max_over_4_in0a3o1a2_0":                     {op: allReduce, reduction: Max, groups: Groups{{0, 3}, {1, 2}}},
		"gonbatch_broadcast_over_4_from3_0":                              {op: broadcast, root: 3},
		"gonbatch_broadcast_over_12_from1_in0a10a11a2a3a4o5a6a7a8a9a1_0": {op: broadcast, root: 1, groups: Groups{{0, 10, 11, 2, 3, 4}, {5, 6, 7, 8, 9, 1}}},
		"gonbatch_all_gather_over_4_in0o1o2o3_0":                         {op: allGather, groups: Groups{{0}, {1}, {2}, {3}}},
		"gonbatch_reduce_scatter_min_over_4_0":                           {op: reduceScatter, reduction: Min},
		"gonbatch_all_to_all_over_4_0":                                   {op: allToAll},
	}
	for name, d := range tests {
		ranks := 4
		if strings.Contains(name, "over_12") {
			ranks = 12
		}
		if got := d.name(ranks) + "_0"; got != name {
			t.Errorf("the name is %s, want %s", got, name)
		}
	}
}

const formText = `module @step {
  func.func @gonbatch_broadcast_over_4_from1_in0a3o1a2_0(%x: tensor<3xui8>, %after: tensor<f32>) -> tensor<3xui8> {
    "stablehlo.return"(%x) : (tensor<3xui8>) -> ()
  }

  func.func @gonbatch_reduce_scatter_max_over_4_1(%x: tensor<8xi64>, %after: tensor<ui8>) -> tensor<2xi64> {
    "stablehlo.return"(%x) : (tensor<2xi64>) -> ()
  }

  func.func @gonbatch_all_to_all_over_4_in0a3o1a2_2(%x: tensor<6xbf16>, %after: tensor<i64>) -> tensor<6xbf16> {
    "stablehlo.return"(%x) : (tensor<6xbf16>) -> ()
  }
}
`

// TestRewriteForms: what a collective does is in the program, as the numbers of a form or as the
// attributes of XLA's own.
func TestRewriteForms(t *testing.T) {
	tests := map[string]struct {
		lowering lowering
		want     []string
	}{
		"custom call": {customCall{}, []string{
			// The kind, whether it is in place, the number for reports, the reduction, the root,
			// the ranks and their places.
			`%form = "stablehlo.constant"() { value = dense<[2, 1, 8177837120660963332, 0, 1, 4, 0, 0, 1, 0, 1, 1, 0, 1]> : tensor<14xi64> }`,
			`%result = "stablehlo.custom_call"(%x, %after, %form) { call_target_name = "gonbatch_collective_2_over_4", api_version = 4 : i32, has_side_effect = true, backend_config = {}, output_operand_aliases = [#`,
			" : (tensor<3xui8>, tensor<f32>, tensor<14xi64>) -> tensor<3xui8>",
			`%form = "stablehlo.constant"() { value = dense<[5, 0, 2, 2, 0, 0]> : tensor<6xi64> }`,
			": (tensor<8xi64>, tensor<ui8>, tensor<6xi64>) -> tensor<2xi64>",
			"output_operand_aliases = [] } : (tensor<6xbf16>, tensor<i64>, tensor<14xi64>) -> tensor<6xbf16>",
		}},
		"native": {native{}, []string{
			`"stablehlo.collective_broadcast"(%x) { replica_groups = dense<[[3, 0], [2, 1]]> : tensor<2x2xi64> } : (tensor<3xui8>) -> tensor<3xui8>`,
			`%sum = "stablehlo.maximum"(%a, %b) : (tensor<i64>, tensor<i64>) -> tensor<i64>`,
			"}) { scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64> } : (tensor<8xi64>) -> tensor<2xi64>",
			`"stablehlo.all_to_all"(%ready) { split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 3], [1, 2]]> : tensor<2x2xi64> }`,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, count, err := rewriteText(t, formText, test.lowering, 4, map[string]does{
				"gonbatch_broadcast_over_4_from1_in0a3o1a2_0": {op: broadcast, root: 1, groups: Groups{{0, 3}, {1, 2}}}, "gonbatch_reduce_scatter_max_over_4_1": {op: reduceScatter, reduction: Max},
				"gonbatch_all_to_all_over_4_in0a3o1a2_2": {op: allToAll, groups: Groups{{0, 3}, {1, 2}}},
			})
			if count != 3 || err != nil {
				t.Fatalf("%d functions rewritten, want 3; %v:\n%s", count, err, got)
			}
			for _, want := range test.want {
				if strings.Count(got, want) != 1 {
					t.Errorf("the program does not have %q exactly once:\n%s", want, got)
				}
			}
			all := collectivesOf([]byte(got))
			for i, want := range []collective{{op: broadcast, dtype: 6, count: 3}, {op: reduceScatter, dtype: 5, count: 2}, {op: allToAll, dtype: 16, count: 3}} {
				all[i].detail = 0
				if all[i] != want {
					t.Errorf("collective %d is %+v, want %+v", i, all[i], want)
				}
			}
		})
	}
}

// TestGroupsRefused: groups that don't divide the ranks are refused.
func TestGroupsRefused(t *testing.T) {
	for _, g := range []Groups{{}, {{0, 1}, {2}}, {{0, 1}, {1, 2}}, {{0, 1}, {2, 4}}, {{0, 1}}, {{}, {}}, {{0, -1}, {1, 2}}} {
		if err := g.Check(4); err == nil {
			t.Errorf("%v divides 4 ranks", g)
		}
	}
}
