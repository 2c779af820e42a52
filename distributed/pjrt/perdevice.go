package pjrt

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// meshPattern matches a mesh of one axis. With another axis, XLA divides the weights too.
var meshPattern = regexp.MustCompile(`sdy\.mesh @(\w+) = <\["(\w+)"=(\d+)\]>`)

// perDeviceOf returns nil for a program whose kernels can't be divided.
func perDeviceOf(module string) *perDevice {
	m := meshPattern.FindAllStringSubmatch(module, -1)
	if len(m) != 1 || strings.Count(module, "func.func") != 1 {
		return nil
	}
	devices, err := strconv.Atoi(m[0][3])
	if err != nil || devices < 2 || !strings.Contains(module, fmt.Sprintf("stablehlo.num_partitions = %d", devices)) {
		return nil
	}
	p := &perDevice{devices: devices, mesh: m[0][1], axis: m[0][2]}
	p.findDivided(module)
	return p
}

// firstDivided matches the attributes of a parameter whose first dimension is divided.
var firstDivided = regexp.MustCompile(`^sdy\.sharding = #sdy\.sharding<@\w+, \[\{"\w+"\}`)

// signature matches the types of the operands and of the result at the end of a statement.
var signature = regexp.MustCompile(`(?m) : \(([^()]*)\) -> tensor<([^<>]*)>$`)

// findDivided follows the parameters that are divided through the program.
func (p *perDevice) findDivided(module string) {
	p.divided = map[string]bool{}
	if main, ok := cutMain(module); ok {
		for _, v := range main.values() {
			p.divided[v.name] = firstDivided.MatchString(v.attributes)
		}
	}
	all := mainStatement.places(module)
	for i, at := range all {
		end := len(module)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		s := submatches(module, at)
		if p.keepsDivision(s[2], list(s[3]), module[at[len(at)-1]+1:end]) {
			p.divided[s[1]] = true
		}
	}
}

// keepsDivision reports whether the first dimension of an operation's result is that of a divided
// operand. The rest is the text after the operands.
func (p *perDevice) keepsDivision(operation string, operands []string, rest string) bool {
	types := signature.FindAllStringSubmatch(rest, -1)
	if types == nil || !slices.ContainsFunc(operands, func(name string) bool { return p.divided[name] }) {
		return false
	}
	last := types[len(types)-1]
	result := firstDimension(last[2])
	if operation == "transpose" && !strings.Contains(rest, "permutation = array<i64: 0") {
		return false
	}
	if operation == "dot_general" && p.contracts(rest) {
		return false
	}
	for i, operand := range list(last[1]) {
		first := firstDimension(strings.Trim(strings.TrimPrefix(operand, "tensor"), "<>"))
		same := first == result || operation == "reshape" && first > 0 && max(result, first)%max(min(result, first), 1) == 0
		if i < len(operands) && p.divided[operands[i]] && same && result%p.devices == 0 {
			return true
		}
	}
	return false
}

// contracts reports whether a product adds up over the first dimension of a.
func (p *perDevice) contracts(rest string) bool {
	return slices.Equal(operation{attributes: rest}.numbersAttribute("lhs_contracting_dimensions"), []int{0})
}

// firstDimension returns the first dimension of a type such as 64x28xf32; 0 if there is none.
func firstDimension(of string) int {
	digits, _, _ := strings.Cut(of, "x")
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

// cut says what each device has of an operation's operands and result.
type cut struct {
	b    bool // b is divided, as a is; else each device has all of it.
	sums bool // The result is the sum of those of all devices; else it is divided.
}

// convolutionCut is the cut of a convolution: images, or sums of the gradients of weights.
func convolutionCut(o operation) cut {
	gradient := strings.Contains(o.attributes, gradientLayout)
	return cut{b: gradient, sums: gradient}
}

// productCut reports false for a product whose operands aren't divided by their first dimensions.
func (p *perDevice) productCut(o operation) (cut, bool) {
	pairs := len(o.numbersAttribute("lhs_batching_dimensions")) > 0
	k, l := o.numbersAttribute("lhs_contracting_dimensions"), o.numbersAttribute("rhs_contracting_dimensions")
	switch a, b := p.divided[o.a], p.divided[o.b]; {
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
	return tensorOf(append([]int{dims[0] / p.devices}, dims[1:]...)), true
}

func tensorOf(dims []int) string {
	var text strings.Builder
	for _, n := range dims {
		fmt.Fprintf(&text, "%dx", n)
	}
	return "tensor<" + text.String() + "f32>"
}

// local returns the operation on a device's part.
func (p *perDevice) local(o operation, its cut) (operation, bool) {
	suffix := strings.TrimPrefix(o.name, "%")
	in := operation{
		indent: o.indent + "  ", name: "%gonbatch_part_" + suffix, a: "%gonbatch_a_" + suffix, b: "%gonbatch_b_" + suffix,
		attributes: o.attributes, bType: o.bType, out: o.out,
	}
	var a, b, out bool
	in.aType, a = p.of(o.aType)
	if b = !its.b; its.b {
		in.bType, b = p.of(o.bType)
	}
	if out = its.sums; !its.sums {
		in.out, out = p.of(o.out)
	}
	return in, a && b && out
}

// divide writes o so that each device computes its cut by the statement.
func (p *perDevice) divide(o, in operation, its cut, statement string) string {
	if its.sums {
		return p.addUp(o, in, statement)
	}
	return p.byHand(o, in, its, statement)
}

// byHand writes the computation of a device's part as that of the whole.
func (p *perDevice) byHand(o, in operation, its cut, statement string) string {
	return fmt.Sprintf("%[1]s%[2]s = sdy.manual_computation(%[3]s, %[4]s) in_shardings=[%[5]s, %[6]s] out_shardings=[%[7]s] manual_axes={%[8]q} (%[9]s: %[10]s, %[11]s: %[12]s) {\n"+
		"%[13]s\n%[1]s  sdy.return %[14]s : %[15]s\n%[1]s} : (%[16]s, %[17]s) -> %[18]s",
		o.indent, o.name, o.a, o.b, p.sharding(o.aType, true), p.sharding(o.bType, its.b), p.sharding(o.out, true), p.axis,
		in.a, in.aType, in.b, in.bType, statement, in.name, in.out, o.aType, o.bType, o.out)
}

// sharding is Shardy's text for a tensor of which each device has a part, or all.
func (p *perDevice) sharding(tensor string, divided bool) string {
	dims := slices.Repeat([]string{"{}"}, len(dimensionsOf(tensor)))
	if divided {
		dims[0] = fmt.Sprintf("{%q}", p.axis)
	}
	return fmt.Sprintf("<@%s, [%s]>", p.mesh, strings.Join(dims, ", "))
}

// addUp writes the sum of the devices' results: as rows of one tensor, which XLA adds up.
func (p *perDevice) addUp(o, in operation, statement string) string {
	dims := dimensionsOf(o.out)
	row, rows := tensorOf(append([]int{1}, dims...)), tensorOf(append([]int{p.devices}, dims...))
	suffix := strings.TrimPrefix(o.name, "%")
	own := in
	own.name, own.out = "%gonbatch_row_"+suffix, row
	all := o
	all.name, all.out = "%gonbatch_rows_"+suffix, rows
	statement += fmt.Sprintf("\n%s%s = \"stablehlo.reshape\"(%s) : (%s) -> %s", in.indent, own.name, in.name, in.out, row)
	zero := "%gonbatch_zero_" + suffix
	return p.byHand(all, own, cut{b: true}, statement) + fmt.Sprintf("\n%[1]s%[2]s = stablehlo.constant dense<0.0> : tensor<f32>\n"+
		"%[1]s%[3]s = \"stablehlo.reduce\"(%[4]s, %[2]s) ({\n"+
		"%[1]s  ^reductionFn(%%gonbatch_lhs: tensor<f32>, %%gonbatch_rhs: tensor<f32>) :\n"+
		"%[1]s      %%gonbatch_sum = \"stablehlo.add\"(%%gonbatch_lhs, %%gonbatch_rhs) : (tensor<f32>, tensor<f32>) -> tensor<f32>\n"+
		"%[1]s      \"stablehlo.return\"(%%gonbatch_sum) : (tensor<f32>) -> ()\n"+
		"%[1]s}) { dimensions = array<i64: 0> } : (%[5]s, tensor<f32>) -> %[6]s",
		o.indent, zero, o.name, all.name, rows, o.out)
}
