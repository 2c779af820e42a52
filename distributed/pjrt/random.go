package pjrt

import (
	"fmt"
	"regexp"
	"strings"
)

// generator matches a statement that draws random bits, as go-xla writes it.
//
//	%0, %1 = "stablehlo.rng_bit_generator"(%state) { rng_algorithm = #stablehlo<rng_algorithm PHILOX> } : (tensor<3xui64>) -> (tensor<3xui64>, tensor<8x8xui32>)
var generator = regexp.MustCompile(`"stablehlo\.rng_bit_generator"(\(%[\w.]+\)) \{ rng_algorithm = #stablehlo<rng_algorithm PHILOX> \} : ` +
	`\(tensor<3xui64>\) -> \(tensor<3xui64>, tensor<((?:\d+x)+)(ui32|ui64)>\)`)

// drawQuicklyOnCPU is drawQuickly where it helps: GPUs have no use for it.
func drawQuicklyOnCPU(module string) (string, int) {
	mu.Lock()
	defer mu.Unlock()
	if _, ok := loaded["cpu"]; !ok {
		return module, 0
	}
	return drawQuickly(module, smallDraw)
}

// smallDraw is the number of elements up to which a drawing stays as it is: there is nothing to
// gain, and each takes time to compile.
const smallDraw = 1000

// drawQuickly replaces the drawing of random bits in a StableHLO module (text form) by functions
// that give the same bits, and the same next state, in operations that XLA's CPU compiler makes
// vector instructions of: with a million elements, in a fifth of the time. It leaves small ones as
// they are, and returns how many it has replaced.
func drawQuickly(module string, small int) (string, int) {
	var functions strings.Builder
	count, written := 0, map[draw]bool{}
	out := generator.ReplaceAllStringFunc(module, func(statement string) string {
		m := generator.FindStringSubmatch(statement)
		d := draw{name: "gonbatch_random_" + m[2] + m[3], dimensions: m[2], element: m[3]}
		if d.elements() <= small {
			return statement
		}
		if count++; !written[d] {
			written[d] = true
			functions.WriteString(d.function())
		}
		return fmt.Sprintf("func.call @%s%s : (tensor<3xui64>) -> (tensor<3xui64>, %s)", d.name, m[1], d.shape())
	})
	end := strings.LastIndex(out, "}")
	if count == 0 || end < 0 {
		return module, 0
	}
	return out[:end] + functions.String() + out[end:], count
}

// draw is the drawing of an array of random bits.
type draw struct {
	name       string
	dimensions string // 8x8x
	element    string // ui32 or ui64
}

func (d draw) shape() string { return "tensor<" + d.dimensions + d.element + ">" }

func (d draw) elements() int {
	n := 1
	for _, dimension := range strings.Split(strings.TrimSuffix(d.dimensions, "x"), "x") {
		var size int
		if _, err := fmt.Sscan(dimension, &size); err != nil {
			return 0
		}
		n *= size
	}
	return n
}

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3). A block
// of four words is computed from a counter of 128 bits and a key of 64.
const (
	philoxRounds             = 10
	multiplier0, multiplier1 = 0xD2511F53, 0xCD9E8D57
	weyl0, weyl1             = 0x9E3779B9, 0xBB67AE85
)

// function writes the drawing: pairs of words, each computed from its block's counter. The first
// word of the state is the key, the others are the counter.
func (d draw) function() string {
	wordsOf := map[string]int{"ui32": 1, "ui64": 2}
	blocks := (d.elements()*wordsOf[d.element] + 3) / 4
	f := &philoxFunction{vector: fmt.Sprintf("tensor<%dxui64>", 2*blocks), size: 2 * blocks}
	fmt.Fprintf(f, "\n  func.func private @%s_pairs(%%state: tensor<3xui64>) -> %s {\n", d.name, f.vector)
	f.counters()
	for round := range philoxRounds {
		f.round(round)
	}
	f.pairs()
	fmt.Fprintf(f, "\n  func.func private @%s(%%state: tensor<3xui64>) -> (tensor<3xui64>, %s) {\n", d.name, d.shape())
	fmt.Fprintf(f, "    %%pairs = func.call @%s_pairs(%%state) {mhlo.frontend_attributes = {inlineable = \"false\"}} : (tensor<3xui64>) -> %s\n", d.name, f.vector)
	f.advance(blocks)
	f.output(d)
	return f.String()
}

// philoxFunction writes operations on vectors of words, each in 64 bits.
type philoxFunction struct {
	strings.Builder
	vector string
	size   int
}

// constant writes one of all elements and returns its name.
func (f *philoxFunction) constant(name string, value uint64) string {
	fmt.Fprintf(f, "    %s = stablehlo.constant dense<%d> : %s\n", name, value, f.vector)
	return name
}

// op writes an operation on two vectors.
func (f *philoxFunction) op(name, operation, a, b string) {
	fmt.Fprintf(f, "    %s = stablehlo.%s %s, %s : %s\n", name, operation, a, b, f.vector)
}

// halves writes words whose lower halves are the halves of each element.
func (f *philoxFunction) halves(lower, upper, of string) {
	f.op(lower, "or", of, of)
	f.op(upper, "shift_right_logical", of, "%32")
}

// element writes a vector of an element of the state.
func (f *philoxFunction) element(name string, i int) {
	f.part(name, i)
	fmt.Fprintf(f, "    %s = stablehlo.broadcast_in_dim %s_0, dims = [] : (tensor<ui64>) -> %s\n", name, name, f.vector)
}

// part writes an element of the state as an array of one, and as a scalar.
func (f *philoxFunction) part(name string, i int) {
	fmt.Fprintf(f, "    %s_1 = stablehlo.slice %%state [%d:%d] : (tensor<3xui64>) -> tensor<1xui64>\n", name, i, i+1)
	fmt.Fprintf(f, "    %s_0 = stablehlo.reshape %s_1 : (tensor<1xui64>) -> tensor<ui64>\n", name, name)
}

// counters writes the key %k0, %k1 and the counter %c0 to %c3 of each block, for two elements.
func (f *philoxFunction) counters() {
	f.constant("%mask", 1<<32-1)
	f.constant("%32", 32)
	f.constant("%one", 1)
	f.element("%key", 0)
	f.element("%low", 1)
	f.element("%high", 2)
	fmt.Fprintf(f, "    %%index = stablehlo.iota dim = 0 : %s\n", f.vector)
	f.op("%block", "shift_right_logical", "%index", "%one")
	f.op("%l", "add", "%low", "%block")
	compared := strings.Replace(f.vector, "ui64", "i1", 1)
	fmt.Fprintf(f, "    %%carry_1 = stablehlo.compare LT, %%l, %%low : (%s, %[1]s) -> %s\n", f.vector, compared)
	fmt.Fprintf(f, "    %%carry = stablehlo.convert %%carry_1 : (%s) -> %s\n", compared, f.vector)
	f.op("%h", "add", "%high", "%carry")
	f.halves("%k0_0", "%k1_0", "%key")
	f.halves("%c0_0", "%c1_0", "%l")
	f.halves("%c2_0", "%c3_0", "%h")
	f.constant("%m0", multiplier0)
	f.constant("%m1", multiplier1)
	f.constant("%w0", weyl0)
	f.constant("%w1", weyl1)
}

// round writes that round. What is above the lower half of a word has no meaning: it is cleared
// before a word is multiplied, so that the compiler sees there that it can take the multiplication
// of half words, which is faster by far.
func (f *philoxFunction) round(n int) {
	at := func(name string) string { return fmt.Sprintf("%%%s_%d", name, n) }
	next := func(name string) string { return fmt.Sprintf("%%%s_%d", name, n+1) }
	f.op(at("a0"), "and", at("c0"), "%mask")
	f.op(at("a2"), "and", at("c2"), "%mask")
	f.op(next("c3"), "multiply", "%m0", at("a0"))
	f.op(next("c1"), "multiply", "%m1", at("a2"))
	f.op(at("u0"), "shift_right_logical", next("c3"), "%32")
	f.op(at("u1"), "shift_right_logical", next("c1"), "%32")
	f.op(at("x0"), "xor", at("c1"), at("k0"))
	f.op(at("x2"), "xor", at("c3"), at("k1"))
	f.op(next("c0"), "xor", at("u1"), at("x0"))
	f.op(next("c2"), "xor", at("u0"), at("x2"))
	f.op(next("k0"), "add", at("k0"), "%w0")
	f.op(next("k1"), "add", at("k1"), "%w1")
}

// advance writes the next state: the counter behind the blocks.
func (f *philoxFunction) advance(blocks int) {
	f.part("%key", 0)
	f.part("%low", 1)
	f.part("%high", 2)
	fmt.Fprintf(f, `    %%blocks = stablehlo.constant dense<%d> : tensor<ui64>
    %%next_low = stablehlo.add %%low_0, %%blocks : tensor<ui64>
    %%over_1 = stablehlo.compare LT, %%next_low, %%low_0 : (tensor<ui64>, tensor<ui64>) -> tensor<i1>
    %%over = stablehlo.convert %%over_1 : (tensor<i1>) -> tensor<ui64>
    %%next_high = stablehlo.add %%high_0, %%over : tensor<ui64>
    %%low_2 = stablehlo.reshape %%next_low : (tensor<ui64>) -> tensor<1xui64>
    %%high_2 = stablehlo.reshape %%next_high : (tensor<ui64>) -> tensor<1xui64>
    %%next = stablehlo.concatenate %%key_1, %%low_2, %%high_2, dim = 0 : (tensor<1xui64>, tensor<1xui64>, tensor<1xui64>) -> tensor<3xui64>
`, blocks)
}

// pairs writes the first pair of words of each block to its first element, and the second to the
// other.
func (f *philoxFunction) pairs() {
	last := func(name string) string { return fmt.Sprintf("%%%s_%d", name, philoxRounds) }
	f.op("%a0", "and", last("c0"), "%mask")
	f.op("%a1", "shift_left", last("c1"), "%32")
	f.op("%a", "or", "%a0", "%a1")
	f.op("%b0", "and", last("c2"), "%mask")
	f.op("%b1", "shift_left", last("c3"), "%32")
	f.op("%b", "or", "%b0", "%b1")
	f.op("%odd_1", "and", "%index", "%one")
	compared := strings.Replace(f.vector, "ui64", "i1", 1)
	fmt.Fprintf(f, "    %%odd = stablehlo.convert %%odd_1 : (%s) -> %s\n", f.vector, compared)
	fmt.Fprintf(f, "    %%pairs = stablehlo.select %%odd, %%b, %%a : (%s, %s, %[2]s) -> %[2]s\n", compared, f.vector)
	fmt.Fprintf(f, "    return %%pairs : %s\n  }\n", f.vector)
}

// output makes an array of the drawing's shape of the pairs.
func (f *philoxFunction) output(d draw) {
	flat, n := "%pairs", f.size
	if d.element == "ui32" {
		fmt.Fprintf(f, "    %%halves = stablehlo.bitcast_convert %%pairs : (%s) -> tensor<%dx2xui32>\n", f.vector, n)
		n *= 2
		fmt.Fprintf(f, "    %%words = stablehlo.reshape %%halves : (tensor<%dx2xui32>) -> tensor<%dxui32>\n", f.size, n)
		flat = "%words"
	}
	fmt.Fprintf(f, "    %%some = stablehlo.slice %s [0:%d] : (tensor<%dx%s>) -> tensor<%[2]dx%[4]s>\n", flat, d.elements(), n, d.element)
	fmt.Fprintf(f, "    %%bits = stablehlo.reshape %%some : (tensor<%dx%s>) -> %s\n", d.elements(), d.element, d.shape())
	fmt.Fprintf(f, "    return %%next, %%bits : tensor<3xui64>, %s\n  }\n", d.shape())
}
