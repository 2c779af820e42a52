package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// product is the product of an m x k and a k x n matrix in the forward pass, or of several pairs of
// them, so many times in a step. Its gradients are two more products, one for each operand.
type product struct {
	pairs, m, k, n, times int
	inputs                int // Of the times, those whose operand a is an input of the network, and needs no gradient.
}

// productsOf returns the products of a network; none if convolutions take most of its time.
func productsOf(name string, batch int) []product {
	switch name {
	case "mlp":
		return []product{{1, batch, mlpWidth, mlpWidth, 6, 1}, {1, batch, mlpWidth, 10, 1, 0}}
	case "gpt":
		tokens, pairs, width := batch*gpt.ContextLength, batch*gpt.Heads, gpt.Width
		return []product{
			{1, tokens, width, 3 * width, gpt.Layers, 0}, // Queries, keys and values.
			{1, tokens, width, width, gpt.Layers, 0},
			{pairs, gpt.ContextLength, width / gpt.Heads, gpt.ContextLength, gpt.Layers, 0},
			{pairs, gpt.ContextLength, gpt.ContextLength, width / gpt.Heads, gpt.Layers, 0},
			{1, tokens, width, 4 * width, gpt.Layers, 0},
			{1, tokens, 4 * width, width, gpt.Layers, 0},
			{1, tokens, width, gpt.VocabSize, 1, 0},
		}
	}
	return nil
}

// calls is how often each product is timed.
const calls = 9

// timeProducts returns how long the products of a step take by themselves. No step that computes
// them in this way can take less.
func timeProducts(backend compute.Backend, name string, batch int) (sum time.Duration, err error) {
	all := productsOf(name, batch)
	if all == nil {
		return 0, fmt.Errorf("-products -model %s: products don't take most of its time; want mlp or gpt", name)
	}
	for _, p := range all {
		a, b, out := random(p.pairs, p.m, p.k), random(p.pairs, p.k, p.n), random(p.pairs, p.m, p.n)
		for _, one := range []struct {
			equation string
			x, y     *tensors.Tensor
			times    int
		}{{"pmk,pkn->pmn", a, b, p.times}, {"pmn,pkn->pmk", out, b, p.times - p.inputs}, {"pmk,pmn->pkn", a, out, p.times}} {
			took, err := timeEinsum(backend, one.equation, one.x, one.y)
			if err != nil {
				return 0, err
			}
			sum += took * time.Duration(one.times)
		}
	}
	return sum, nil
}

// timeEinsum returns the median of several calls. Operands of one pair are plain matrices.
func timeEinsum(backend compute.Backend, equation string, x, y *tensors.Tensor) (time.Duration, error) {
	exec, err := graph.NewExec(backend, func(x, y *graph.Node) *graph.Node {
		if x.Shape().Dimensions[0] > 1 {
			return graph.Einsum(equation, x, y)
		}
		matrices := ""
		for _, c := range equation {
			if c != 'p' {
				matrices += string(c)
			}
		}
		return graph.Einsum(matrices, graph.Squeeze(x, 0), graph.Squeeze(y, 0))
	})
	if err != nil {
		return 0, err
	}
	defer exec.Finalize()
	var all []time.Duration
	for i := range calls + 1 {
		began := time.Now()
		out, err := exec.Call(x, y)
		if err != nil {
			return 0, err
		}
		out[0].MustFinalizeAll()
		if i > 0 {
			all = append(all, time.Since(began))
		}
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

// random returns a tensor of numbers that don't slow the processor down.
func random(size ...int) *tensors.Tensor {
	values := make([]float32, shapes.Make(dtypes.Float32, size...).Size())
	for i := range values {
		values[i] = float32(i%17) / 16
	}
	return tensors.FromFlatDataAndDimensions(values, size...)
}
