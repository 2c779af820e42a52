package pjrt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonbatch/distributed/stablehlo"
)

// perDevice divides the kernels of a program among the devices of a process. XLA can't divide a
// custom call: each device would compute all of it. So the call becomes a computation by hand, in
// Shardy's sense (https://openxla.org/shardy): each device calls the kernel for its cut of the
// batch. XLA divides everything around it as before, and adds up the gradients.
type perDevice struct {
	devices    int
	mesh, axis string
	// divided are the values whose first dimension XLA divides, presumably. An error costs time,
	// because XLA then moves data, but the result is right.
	divided map[string]bool
}

// perDeviceOf returns nil for a program whose kernels can't be divided.
func perDeviceOf(m *stablehlo.Module) *perDevice {
	_, text, _ := strings.Cut(m.Head(), "sdy.mesh @")
	mesh, axes, ok := strings.Cut(text, " = <[")
	axes, _, ok2 := strings.Cut(axes, "]>")
	axis, size, ok3 := strings.Cut(axes, "=") // With another axis, XLA divides the weights too.
	devices, err := strconv.Atoi(size)
	if !ok || !ok2 || !ok3 || err != nil || devices < 2 || devices != partitionsOf(m.Head()) || strings.Count(m.Head(), "sdy.mesh") != 1 || len(m.Functions) != 1 {
		return nil
	}
	p := &perDevice{devices: devices, mesh: mesh, axis: strings.Trim(axis, `"`), divided: map[string]bool{}}
	if main := m.Main(); main != nil {
		p.findDivided(main)
	}
	return p
}

// findDivided follows the parameters that are divided through the program.
func (p *perDevice) findDivided(main *stablehlo.Function) {
	for _, v := range main.Parameters {
		sharding, ok := strings.CutPrefix(v.Attributes, "sdy.sharding = #sdy.sharding<@"+p.mesh+", [")
		p.divided[v.Name] = ok && strings.HasPrefix(sharding, fmt.Sprintf("{%q}", p.axis))
	}
	for _, o := range main.Ops {
		if o.Result() != "" && p.keepsDivision(o) {
			p.divided[o.Result()] = true
		}
	}
}

// keepsDivision reports whether the first dimension of an operation's result is that of a divided
// operand.
func (p *perDevice) keepsDivision(o *stablehlo.Op) bool {
	switch o.Name {
	case "stablehlo.transpose":
		if permutation := o.Ints("permutation"); len(permutation) == 0 || permutation[0] != 0 {
			return false
		}
	case "stablehlo.dot_general": // One that adds up over the first dimension doesn't.
		if slices.Equal(o.Ints("lhs_contracting_dimensions"), []int{0}) {
			return false
		}
	}
	result := firstDimension(o.Out[0])
	for i, operand := range o.Operands {
		first := firstDimension(o.Types[i])
		same := first == result || o.Name == "stablehlo.reshape" && first > 0 && max(result, first)%max(min(result, first), 1) == 0
		if p.divided[operand] && same && result%p.devices == 0 {
			return true
		}
	}
	return false
}

// firstDimension returns the first dimension of a tensor; 0 if there is none.
func firstDimension(tensor string) int {
	dimensions, _, _ := stablehlo.Tensor(tensor)
	if len(dimensions) == 0 {
		return 0
	}
	return dimensions[0]
}

// cut says what each device has of an operation's operands and result.
type cut struct {
	b    bool // b is divided, as a is; else each device has all of it.
	sums bool // The result is the sum of those of all devices; else it is divided.
}

// convolutionCut is the cut of a convolution: images, or sums of the gradients of weights.
func convolutionCut(o *stablehlo.Op) cut {
	gradient := strings.Contains(o.Attributes, gradientLayout)
	return cut{b: gradient, sums: gradient}
}

// productCut reports false for a product whose operands aren't divided by their first dimensions.
func (p *perDevice) productCut(o *stablehlo.Op) (cut, bool) {
	pairs := len(o.Ints("lhs_batching_dimensions")) > 0
	k, l := o.Ints("lhs_contracting_dimensions"), o.Ints("rhs_contracting_dimensions")
	switch a, b := p.divided[o.Operands[0]], p.divided[o.Operands[1]]; {
	case pairs:
		return cut{b: true}, a || b
	case slices.Equal(k, []int{0}) && slices.Equal(l, []int{0}):
		return cut{b: true, sums: true}, a && b
	case slices.Equal(k, []int{1}):
		return cut{}, a && !b
	}
	return cut{}, false
}

// of returns the type of a device's part of a tensor, and false if it can't be divided.
func (p *perDevice) of(tensor string) (string, bool) {
	dims := dimensionsOf(tensor)
	if len(dims) == 0 || dims[0]%p.devices != 0 {
		return "", false
	}
	return stablehlo.TensorOf("f32", append([]int{dims[0] / p.devices}, dims[1:]...)...), true
}

// local returns the operation on a device's part.
func (p *perDevice) local(o *stablehlo.Op, its cut) (*stablehlo.Op, bool) {
	result := o.Results[0]
	left, right, out := stablehlo.Value{Name: own("a", result)}, stablehlo.Value{Name: own("b", result), Type: o.Types[1]}, stablehlo.Value{Name: own("part", result), Type: o.Out[0]}
	var a, b, c bool
	left.Type, a = p.of(o.Types[0])
	if b = !its.b; its.b {
		right.Type, b = p.of(o.Types[1])
	}
	if c = its.sums; !its.sums {
		out.Type, c = p.of(o.Out[0])
	}
	return stablehlo.New(o.Name, o.Attributes, []stablehlo.Value{left, right}, out), a && b && c
}

// divide returns o so that each device computes its cut by the operations.
func (p *perDevice) divide(o, in *stablehlo.Op, its cut, ops []*stablehlo.Op) []*stablehlo.Op {
	if its.sums {
		return p.addUp(o, in, ops)
	}
	return []*stablehlo.Op{p.byHand(o, in, its, resultOf(o), resultOf(in), ops)}
}

// byHand returns the computation of a device's part, as that of the whole.
func (p *perDevice) byHand(o, in *stablehlo.Op, its cut, whole, part stablehlo.Value, ops []*stablehlo.Op) *stablehlo.Op {
	const indent = "    "
	var body strings.Builder
	for _, op := range ops {
		body.WriteString(op.Text(indent + "  "))
	}
	text := fmt.Sprintf("%[1]s%[2]s = sdy.manual_computation(%[3]s, %[4]s) in_shardings=[%[5]s, %[6]s] out_shardings=[%[7]s] manual_axes={%[8]q} (%[9]s: %[10]s, %[11]s: %[12]s) {\n"+
		"%[13]s%[1]s  sdy.return %[14]s : %[15]s\n%[1]s} : (%[16]s, %[17]s) -> %[18]s\n",
		indent, whole.Name, o.Operands[0], o.Operands[1], p.sharding(o.Types[0], true), p.sharding(o.Types[1], its.b), p.sharding(whole.Type, true), p.axis,
		in.Operands[0], in.Types[0], in.Operands[1], in.Types[1], body.String(), part.Name, part.Type, o.Types[0], o.Types[1], whole.Type)
	return stablehlo.New("sdy.manual_computation", "", []stablehlo.Value{o.Operand(0), o.Operand(1)}, whole).Written(text)
}

// sharding is Shardy's text for a tensor of which each device has a part, or all.
func (p *perDevice) sharding(tensor string, divided bool) string {
	dims := slices.Repeat([]string{"{}"}, len(dimensionsOf(tensor)))
	if divided {
		dims[0] = fmt.Sprintf("{%q}", p.axis)
	}
	return fmt.Sprintf("<@%s, [%s]>", p.mesh, strings.Join(dims, ", "))
}

// addUp returns the sum of the devices' results: as rows of one tensor, which XLA adds up.
func (p *perDevice) addUp(o, in *stablehlo.Op, ops []*stablehlo.Op) []*stablehlo.Op {
	result := resultOf(o)
	dims := dimensionsOf(result.Type)
	row := stablehlo.Value{Name: own("row", result.Name), Type: stablehlo.TensorOf("f32", append([]int{1}, dims...)...)}
	rows := stablehlo.Value{Name: own("rows", result.Name), Type: stablehlo.TensorOf("f32", append([]int{p.devices}, dims...)...)}
	ops = append(ops, stablehlo.New("stablehlo.reshape", "", []stablehlo.Value{resultOf(in)}, row))
	zero, lhs, rhs, sum := scalar(own("zero", result.Name)), scalar("%gonbatch_lhs"), scalar("%gonbatch_rhs"), scalar("%gonbatch_sum")
	reduce := stablehlo.New("stablehlo.reduce", "{ dimensions = array<i64: 0> }", []stablehlo.Value{rows, zero}, result)
	reduce.Regions = []*stablehlo.Region{{Name: "reductionFn", Parameters: []stablehlo.Value{lhs, rhs},
		Block: stablehlo.Block{Ops: []*stablehlo.Op{stablehlo.New("stablehlo.add", "", []stablehlo.Value{lhs, rhs}, sum), stablehlo.Return(sum)}}}}
	return []*stablehlo.Op{p.byHand(o, in, cut{b: true}, rows, row, ops), stablehlo.Constant(zero, "0.0"), reduce}
}
