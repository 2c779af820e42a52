package collective_test

import (
	"math"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/gomlx/core/graph"

	"gonbatch/distributed/collective"
)

// value is one rank's value of a type, as float64.
type value struct {
	dtype      dtypes.DType
	dimensions []int
	flat       []float64
}

// like returns a value of the same type with other dimensions and elements.
func (v value) like(dimensions []int, flat []float64) value { return value{v.dtype, dimensions, flat} }

// rounded rounds a number to the type.
func (v value) rounded(x float64) float64 {
	switch v.dtype {
	case dtypes.Float16:
		return half(x)
	case dtypes.BFloat16:
		return float64(bfloat16.FromFloat32(float32(x)).Float32())
	case dtypes.Float32:
		return float64(float32(x))
	}
	return x
}

// half rounds to half precision, by its definition: 11 bits, the last of which is worth at least
// 2^-24 (IEEE 754-2019, binary16). float16.FromFloat32 rounds numbers below 2^-14 to 0.
func half(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	_, exponent := math.Frexp(x)
	last := math.Ldexp(1, max(exponent-11, -24))
	rounded := math.RoundToEven(x/last) * last
	if math.Abs(rounded) > 65504 {
		return math.Inf(int(math.Copysign(1, x)))
	}
	return rounded
}

// step is a collective of a program.
type step struct {
	kind   string
	op     collective.Op
	root   int
	groups [][]int // Nil for all ranks.
}

// build adds the collective to a graph.
func (s step) build(w collective.World, x *graph.Node) *graph.Node {
	g := collective.Over(w)
	if s.groups != nil {
		var err error
		if g, err = collective.Among(w, s.groups); err != nil {
			panic(err)
		}
	}
	switch s.kind {
	case "broadcast":
		return g.Broadcast(x, s.root)
	case "all-gather":
		return g.AllGather(x)
	case "reduce-scatter":
		return g.ReduceScatter(x, s.op)
	case "all-to-all":
		return g.AllToAll(x)
	}
	return g.AllReduce(x, s.op)
}

// compute is the plain model of the collective: it returns each rank's result from the values of
// all ranks.
func (s step) compute(all []value) []value {
	groups := s.groups
	if groups == nil {
		groups = [][]int{make([]int, len(all))}
		for rank := range all {
			groups[0][rank] = rank
		}
	}
	results := make([]value, len(all))
	for _, members := range groups {
		ins := make([]value, len(members))
		for place, rank := range members {
			ins[place] = all[rank]
		}
		for place, rank := range members {
			results[rank] = s.one(ins, place)
		}
	}
	return results
}

// one computes the result of the rank at a place of the group.
func (s step) one(ins []value, place int) value {
	x, n := ins[place], len(ins)
	length := len(x.flat) / n
	switch s.kind {
	case "broadcast":
		return ins[s.root]
	case "all-gather":
		var flat []float64
		for _, in := range ins {
			flat = append(flat, in.flat...)
		}
		return x.like(longer(x.dimensions, n), flat)
	case "all-to-all":
		var flat []float64
		for _, in := range ins {
			flat = append(flat, in.flat[place*length:(place+1)*length]...)
		}
		return x.like(x.dimensions, flat)
	case "reduce-scatter":
		dimensions := slices.Clone(x.dimensions)
		dimensions[0] /= n
		return x.like(dimensions, s.reduced(ins)[place*length:(place+1)*length])
	}
	return x.like(x.dimensions, s.reduced(ins))
}

// longer returns the dimensions of n values, one after the other.
func longer(dimensions []int, n int) []int {
	if len(dimensions) == 0 {
		return []int{n}
	}
	return slices.Concat([]int{n * dimensions[0]}, dimensions[1:])
}

// reduced combines the values of a group. Half precision is added up in float32, in the order of
// the ranks, and floats up to 32 bits are divided in it.
func (s step) reduced(ins []value) []float64 {
	flat := make([]float64, len(ins[0].flat))
	for i := range flat {
		flat[i] = ins[0].flat[i]
		for _, in := range ins[1:] {
			switch s.op {
			case collective.Min:
				flat[i] = extreme(math.Min, flat[i], in.flat[i])
			case collective.Max:
				flat[i] = extreme(math.Max, flat[i], in.flat[i])
			default:
				flat[i] += in.flat[i]
				if ins[0].dtype.IsHalfPrecision() {
					flat[i] = float64(float32(flat[i]))
				}
			}
		}
		switch n := float64(len(ins)); {
		case s.op == collective.Mean && ins[0].dtype == dtypes.Float64:
			flat[i] *= 1 / n
		case s.op == collective.Mean:
			flat[i] = float64(float32(flat[i]) * float32(1/n))
		}
		flat[i] = ins[0].rounded(flat[i])
	}
	return flat
}

// extreme is a minimum or a maximum. Go's own prefer infinities to NaN.
func extreme(of func(a, b float64) float64, a, b float64) float64 {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.NaN()
	}
	return of(a, b)
}
