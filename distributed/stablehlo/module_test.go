package stablehlo_test

import (
	"slices"
	"strings"
	"testing"

	"gonbatch/distributed/stablehlo"
)

// program has what go-xla writes: several functions and results, regions in regions, attributes on
// one line and on several.
const program = `module @step attributes {stablehlo.num_replicas = 1, stablehlo.num_partitions = 2} {
  sdy.mesh @mesh = <["shards"=2]>
  func.func @main(%arg0: tensor<8x4xf32> { sdy.sharding = #sdy.sharding<@mesh, [{"shards"}, {}]> }, %_w: tensor<4xf32>) -> (tensor<4xf32> { a = "x, y" }, tensor<f32>) {
    %0 = "stablehlo.constant"() { value = dense<0.0> : tensor<f32> } : () -> tensor<f32>
    %1 = "stablehlo.reduce"(%arg0, %0) ({
      ^reductionFn(%lhs: tensor<f32>, %rhs: tensor<f32>) :
          %2 = "stablehlo.add"(%lhs, %rhs) : (tensor<f32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) { dimensions = array<i64: 0> } : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    %3, %4 = "stablehlo.while"(%1, %0) ({
      ^cond(%a: tensor<4xf32>, %b: tensor<f32>) :
          %5 = "stablehlo.compare"(%b, %b) {
            compare_type = #stablehlo<comparison_type FLOAT>,
            comparison_direction = #stablehlo<comparison_direction LT>
          } : (tensor<f32>, tensor<f32>) -> tensor<i1>
          "stablehlo.return"(%5) : (tensor<i1>) -> ()
    }, {
      ^body(%c: tensor<4xf32>, %d: tensor<f32>) :
          %6 = "stablehlo.reduce"(%c, %d) ({
            ^reductionFn(%lhs: tensor<f32>, %rhs: tensor<f32>) :
                %7 = "stablehlo.maximum"(%lhs, %rhs) : (tensor<f32>, tensor<f32>) -> tensor<f32>
                "stablehlo.return"(%7) : (tensor<f32>) -> ()
          }) { dimensions = array<i64: 0> } : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
          "stablehlo.return"(%c, %6) : (tensor<4xf32>, tensor<f32>) -> ()
    }) : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
    %8 = "stablehlo.dot_general"(%3, %_w) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_batching_dimensions = [],
  rhs_batching_dimensions = [],
  lhs_contracting_dimensions = [0],
  rhs_contracting_dimensions = [0]
>,
      precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
    %9 = "func.call"(%8, %0) { callee = @twice } : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%3, %9) : (tensor<4xf32>, tensor<f32>) -> ()
  }

  func.func @twice(%x: tensor<f32>, %after: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.add"(%x, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%0) : (tensor<f32>) -> ()
  }
}
`

func parse(t *testing.T, text string) *stablehlo.Module {
	t.Helper()
	m, err := stablehlo.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRoundTrip: a program is written as it was read, and so is what was changed and changed back.
func TestRoundTrip(t *testing.T) {
	m := parse(t, program)
	if got := m.String(); got != program {
		t.Errorf("written as\n%s", got)
	}
	ops := 0
	for _, b := range m.Blocks() {
		for _, o := range b.Ops {
			o.Change()
			ops++
		}
	}
	if got := m.String(); got != program || ops != 16 {
		t.Errorf("%d operations, written as\n%s", ops, got)
	}
}

// TestChanges: a change in a region is written, with everything around it.
func TestChanges(t *testing.T) {
	m := parse(t, program)
	inner := m.Main().Ops[2].Regions[1].Ops[0].Regions[0].Ops[0]
	inner.Name = "stablehlo.minimum"
	inner.Change()
	x := stablehlo.Value{Name: "%x", Type: "tensor<f32>"}
	m.Function("twice").Replace(func(o *stablehlo.Op) []*stablehlo.Op {
		if o.Name != "stablehlo.add" {
			return nil
		}
		return []*stablehlo.Op{
			stablehlo.Constant(stablehlo.Value{Name: "%two", Type: "tensor<f32>"}, "2.0"),
			stablehlo.CustomCall("f", true, []int{1}, []stablehlo.Value{x, x}, stablehlo.Value{Name: "%0", Type: "tensor<f32>"}),
		}
	})
	want := strings.NewReplacer("stablehlo.maximum", "stablehlo.minimum",
		`%0 = "stablehlo.add"(%x, %x) :`, `%two = "stablehlo.constant"() { value = dense<2.0> : tensor<f32> } : () -> tensor<f32>
    %0 = "stablehlo.custom_call"(%x, %x) { call_target_name = "f", api_version = 4 : i32, has_side_effect = true, backend_config = {}, `+
			`output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 1, operand_tuple_indices = []>] } :`).Replace(program)
	if got := m.String(); got != want {
		t.Errorf("written as\n%s", got)
	}
}

func TestFields(t *testing.T) {
	m := parse(t, program)
	main := m.Main()
	reduce, while, dot, call := main.Ops[1], main.Ops[2], main.Ops[3], main.Ops[4]
	switch {
	case m.Function("none") != nil || !strings.HasSuffix(m.Head(), "<[\"shards\"=2]>\n"):
		t.Errorf("the head is %q", m.Head())
	case main.Parameters[0].Attributes != `sdy.sharding = #sdy.sharding<@mesh, [{"shards"}, {}]>` || main.Results[0].Attributes != `a = "x, y"`:
		t.Errorf("%q, %q", main.Parameters, main.Results)
	case !slices.Equal(reduce.Ints("dimensions"), []int{0}) || reduce.Ints("dimension") != nil:
		t.Errorf("dimensions %v", reduce.Ints("dimensions"))
	case !slices.Equal(dot.Ints("lhs_contracting_dimensions"), []int{0}) || len(dot.Ints("lhs_batching_dimensions")) != 0:
		t.Errorf("contracts %v", dot.Ints("lhs_contracting_dimensions"))
	case call.Callee() != "twice" || dot.Callee() != "" || call.Target() != "":
		t.Errorf("calls %q", call.Callee())
	case while.Result() != "" || dot.Result() != "%8" || !slices.Equal(while.Uses(), []string{"%0", "%1", "%5", "%6", "%7", "%b", "%c", "%d", "%lhs", "%rhs"}):
		t.Errorf("%v uses %v", while.Results, while.Uses())
	}
	for typed, want := range map[string]int{"tensor<2x3xf32>": 6, "tensor<f32>": 1, "tensor<0xi8>": 0, "tensor<?xf32>": 0, "tensor<2xcomplex<f32>>": 2, "tensor<complex<f64>>": 1, "tensor<4xindex>": 4, "tuple<f32>": 0} {
		if got := stablehlo.Size(typed); got != want {
			t.Errorf("%s has %d elements, want %d", typed, got, want)
		}
	}
}

// odd has what go-xla can write and GoMLX doesn't ask for: several attributes of a parameter and of
// a result, and strings that look like something else.
const odd = `module @odd {
  func.func @main(%x: tensor<f32> {
    a = "),",
    b = true
  }, %y: tensor<f32>) -> (tensor<f32> {
    jax.result_info = "result) -> {",
    c = 1 : i32
  }) {
    %0 = "stablehlo.custom_call"(%x) {
      backend_config = "a : (b) -> c \" }",
      call_target_name = "a,b"
    } : (tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%0) : (tensor<f32>) -> ()
  }
}
`

func TestOdd(t *testing.T) {
	m := parse(t, odd)
	main := m.Main()
	if len(main.Parameters) != 2 || main.Parameters[1].Type != "tensor<f32>" || main.Results[0].Type != "tensor<f32>" || main.Ops[0].Target() != "a,b" {
		t.Errorf("%q -> %q, calls %q", main.Parameters, main.Results, main.Ops[0].Target())
	}
	main.Ops[0].Retarget("c")
	want := strings.NewReplacer("{\n    a =", "{ a =", "{\n    jax", "{ jax", "true\n  }", "true }", "i32\n  }", "i32 }", `"a,b"`, `"c"`).Replace(odd)
	if got := m.String(); got != want {
		t.Errorf("written as\n%s\nwant\n%s", got, want)
	}
}

// TestRefused: a program in another form than go-xla's is refused, with the place.
func TestRefused(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"func.func", "func.of_tomorrow", "it has no functions"},
		{"func.func @twice", "func.of_tomorrow @twice", "unknown text after the functions"},
		{`%0 = "stablehlo.add"(%x, %x)`, `%0 = stablehlo.add %x, %x`, "function @twice: unknown form of a statement: "},
		{`%8 = "stablehlo.dot_general"`, `%8:2 = "stablehlo.dot_general"`, "line 3: function @main: unknown form of a statement: "},
		{"      ^body(", "      ^body<", "unknown form of a region"},
		{" -> tensor<f32> {\n    %0 = \"stablehlo.add\"", " {\n    %0 = \"stablehlo.add\"", "unknown form of a function"},
		{"(%2) : (tensor<f32>) -> ()", "(%2)", "unknown form"},
		{"  }\n}\n", "", "unknown form of a statement"},
	} {
		text := strings.ReplaceAll(program, tt.from, tt.to)
		if _, err := stablehlo.Parse(text); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q instead of %q: got %v, want %s", tt.to, tt.from, err, tt.want)
		}
	}
}
