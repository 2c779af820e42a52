package step

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/xslices"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/train/loss"

	"gonbatch/data/load"
)

// Bounds refuses classes and tokens that the model doesn't have. XLA would compute on: the row of a
// class that isn't there is all zeros, so its loss is 0, and a token that isn't there has the
// embedding of the last one.
//
// Graphs of one kind, such as those of an update, say which values they take. The goroutines that
// load batches for them check these; batches that are loaded before the first graph is built are
// checked then.
type Bounds struct {
	mu    sync.Mutex
	known []bound
	built bool
	early []earlyBatch
	// copied: the labels of the first batches are the tokens that the model gets.
	copied bool
}

// bound is what a graph takes as a tensor of its batches.
type bound struct {
	label bool // The tensor is one of the labels, else of the inputs.
	at    int  // Which one.
	size  int  // The values are 0 to size-1. 0: any from 0 to 1, as far as rounding lets them.
	why   string
}

// earlyBatch is a batch that was loaded before the bounds were known. Tensors that can't have any
// are nil.
type earlyBatch struct {
	inputs, labels []*tensors.Tensor
	fail           func(row int, err error) error
}

// Forget drops the batches of a dataset that is no longer used.
func (b *Bounds) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.early {
		load.Finalize(slices.DeleteFunc(slices.Concat(e.inputs, e.labels), func(t *tensors.Tensor) bool { return t == nil }))
	}
	b.early = nil
}

// Check checks a batch. It is a load.Check.
func (b *Bounds) Check(inputs, labels []*tensors.Tensor, fail func(row int, err error) error) error {
	b.mu.Lock()
	if b.built {
		known := b.known
		b.mu.Unlock()
		return violation(known, inputs, labels, fail)
	}
	defer b.mu.Unlock()
	early := earlyBatch{fail: fail}
	var err error
	if early.inputs, err = clones(inputs); err != nil {
		return err
	}
	early.labels, err = clones(labels)
	b.early = append(b.early, early)
	return err
}

// clones copies tensors, but not images, which choose nothing.
func clones(all []*tensors.Tensor) ([]*tensors.Tensor, error) {
	own := make([]*tensors.Tensor, len(all))
	for i, t := range all {
		if t.Rank() > 3 && t.DType().IsFloat() {
			continue
		}
		var err error
		if own[i], err = t.LocalClone(); err != nil {
			return nil, err
		}
	}
	return own, nil
}

// learn takes the bounds of a graph with these inputs and labels, and checks the batches that are
// loaded already.
func (b *Bounds) learn(g *graph.Graph, inputs, labels []*graph.Node, lossFn loss.LossFn) error {
	defer b.Forget()
	found := boundsOf(g, inputs, labels)
	if name := binaryLoss(lossFn); name != "" && len(labels) > 0 {
		found = append(found, bound{label: true, why: "loss." + name + " takes labels from 0 to 1"})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.built = true
	for _, one := range found {
		if !slices.Contains(b.known, one) {
			b.known = append(b.known, one)
		}
	}
	b.copied = len(b.early) > 0
	for _, e := range b.early {
		b.copied = b.copied && copies(found, e.inputs, e.labels)
		if err := violation(b.known, e.inputs, e.labels, e.fail); err != nil {
			return err
		}
	}
	return nil
}

// binaryLoss returns the name of a loss of GoMLX that computes with its labels.
func binaryLoss(f loss.LossFn) string {
	if f == nil {
		return ""
	}
	switch reflect.ValueOf(f).Pointer() {
	case reflect.ValueOf(loss.BinaryCrossentropy).Pointer():
		return "BinaryCrossentropy"
	case reflect.ValueOf(loss.BinaryCrossentropyLogits).Pointer():
		return "BinaryCrossentropyLogits"
	}
	return ""
}

// boundsOf finds the inputs and labels that choose rows of a variable, and the labels that
// graph.OneHot gets for a softmax of as many classes. A tensor that the graph also compares with a
// constant may have values that stand for something else, such as padding.
func boundsOf(g *graph.Graph, inputs, labels []*graph.Node) []bound {
	var rows, classes []bound
	places := map[*graph.Node]bound{}
	for i, n := range inputs {
		places[sourceOf(n)] = bound{at: i}
	}
	for i, n := range labels {
		places[sourceOf(n)] = bound{at: i, label: true}
	}
	special, softmax := map[bound]bool{}, map[int]bool{}
	for _, n := range g.Nodes() {
		switch operands := n.Inputs(); n.Type() {
		case graph.NodeTypeLog: // Of the sum of the powers of e, as in LogSoftmax.
			if sum := sourceOf(operands[0]); sum.Type() == graph.NodeTypeReduceSum && sum.Inputs()[0].Type() == graph.NodeTypeExp {
				if d := sum.Inputs()[0].Shape().Dimensions; len(d) > 0 {
					softmax[d[len(d)-1]] = true
				}
			}
		case graph.NodeTypeGather:
			table, indices := sourceOf(operands[0]), operands[1]
			b, ok := places[sourceOf(indices)]
			if d := indices.Shape().Dimensions; ok && isVariable(table) && len(d) > 0 && d[len(d)-1] == 1 && sameRows(operands[0], table) {
				b.size = table.Shape().Dimensions[0]
				b.why = fmt.Sprintf("%s has the rows 0 to %d", table.GetParameterName(), b.size-1)
				rows = append(rows, b)
			}
		case graph.NodeTypeSign:
			if b, ok := places[sourceOf(operands[0])]; ok {
				special[b] = true
			}
		case graph.NodeTypeEqual, graph.NodeTypeNotEqual, graph.NodeTypeLessThan, graph.NodeTypeLessOrEqual, graph.NodeTypeGreaterThan, graph.NodeTypeGreaterOrEqual:
			for i, operand := range operands {
				b, ok := places[sourceOf(operand)]
				switch other := sourceOf(operands[1-i]); {
				case !ok:
				case other.Type() == graph.NodeTypeConstant:
					special[b] = true
				case b.label && n.Type() == graph.NodeTypeEqual && other.Type() == graph.NodeTypeIota:
					b.size = other.Shape().Size()
					b.why = fmt.Sprintf("the model has the classes 0 to %d", b.size-1)
					classes = append(classes, b)
				}
			}
		}
	}
	classes = slices.DeleteFunc(classes, func(b bound) bool { return !softmax[b.size] })
	return slices.DeleteFunc(append(rows, classes...), func(b bound) bool { return special[bound{label: b.label, at: b.at}] })
}

// sourceOf returns the node that a node has all of its values from: not of a slice, whose other
// values may be of another kind.
func sourceOf(n *graph.Node) *graph.Node {
	for {
		switch n.Type() {
		case graph.NodeTypeConvertDType, graph.NodeTypeReshape, graph.NodeTypeBroadcastInDim, graph.NodeTypeIdentity, graph.NodeTypeTranspose:
			n = n.Inputs()[0]
		default:
			return n
		}
	}
}

func isVariable(n *graph.Node) bool {
	return n.Type() == graph.NodeTypeParameter && strings.HasPrefix(n.GetParameterName(), "/")
}

// sameRows reports whether a node has the rows of the variable that it comes from.
func sameRows(n, variable *graph.Node) bool {
	return variable.Rank() > 0 && n.Shape().EqualDimensions(variable.Shape())
}

// violation returns the error of the first value that is out of bounds.
func violation(all []bound, inputs, labels []*tensors.Tensor, fail func(row int, err error) error) error {
	for _, b := range all {
		kind, of := "input", inputs
		if b.label {
			kind, of = "label", labels
		}
		if b.at >= len(of) || of[b.at] == nil || of[b.at].Size() == 0 {
			continue
		}
		t := of[b.at]
		values, err := Numbers(t)
		if err != nil {
			return err
		}
		at := b.outside(values, nil)
		if at < 0 {
			continue
		}
		counts, err := b.counts(t, of)
		if err != nil {
			return err
		}
		if at = b.outside(values, counts); at < 0 {
			continue
		}
		each, where := t.Size()/t.Shape().Dimensions[0], ""
		if each > 1 {
			where = fmt.Sprintf(" at place %d", at%each)
		}
		return fail(at/each, fmt.Errorf("the %s %s%s: %s%s", kind, strconv.FormatFloat(values[at], 'f', -1, 64), where, b.why, b.advice(values[at])))
	}
	return nil
}

// advice says how to fix a value that isn't there.
func (b bound) advice(value float64) string {
	switch {
	case b.size == 0:
	case !b.label && value < 0:
		return " (if it is padding, let the model compare it with that number)"
	case !b.label:
	case value == float64(b.size):
		return " (they count from 0)"
	case value < 0 || value == 255: // The usual marks of what doesn't count.
		return " (GoMLX's losses take a Bool mask beside the labels)"
	}
	return ""
}

// outside returns the first of the values that counts and is out of bounds; -1 if there is none.
func (b bound) outside(values []float64, counts []float64) int {
	for i, x := range values {
		in := x >= 0 && x < float64(b.size) || b.size == 0 && math.Abs(x-0.5) <= 0.501
		if !in && (counts == nil || counts[i] != 0) {
			return i
		}
	}
	return -1
}

// counts returns which values of a tensor count, not 0: a mask says so and, as in GoMLX's losses,
// weights beside labels do, for each value or for each example, place and so on.
func (b bound) counts(t *tensors.Tensor, beside []*tensors.Tensor) ([]float64, error) {
	all := slices.Repeat([]float64{1}, t.Size())
	for _, other := range beside {
		if other == nil || other == t || !begins(t, other) {
			continue
		}
		if isWeights := b.label && other.DType().IsFloat(); other.DType() != dtypes.Bool && !isWeights {
			continue
		}
		own, err := Numbers(other)
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i] *= own[i*len(own)/len(all)]
		}
	}
	return all, nil
}

// begins reports whether the axes of a tensor begin with those of another one, which may have
// further ones of size 1.
func begins(t, other *tensors.Tensor) bool {
	d := other.Shape().Dimensions
	for len(d) > 0 && d[len(d)-1] == 1 {
		d = d[:len(d)-1]
	}
	return len(d) > 0 && len(d) <= t.Rank() && slices.Equal(d, t.Shape().Dimensions[:len(d)])
}

// Numbers returns the values of a tensor of any type; a true one is 1.
func Numbers(t *tensors.Tensor) (all []float64, err error) {
	err = t.ConstFlatData(func(flat any) {
		switch flat := flat.(type) {
		case []int8:
			all = floats(flat)
		case []int16:
			all = floats(flat)
		case []int32:
			all = floats(flat)
		case []int64:
			all = floats(flat)
		case []uint8:
			all = floats(flat)
		case []float32:
			all = floats(flat)
		case []float64:
			all = slices.Clone(flat)
		case []bfloat16.BFloat16:
			all = xslices.Map(flat, func(x bfloat16.BFloat16) float64 { return float64(x.Float32()) })
		case []float16.Float16:
			all = xslices.Map(flat, func(x float16.Float16) float64 { return float64(x.Float32()) })
		case []bool:
			all = make([]float64, len(flat))
			for i, yes := range flat {
				if yes {
					all[i] = 1
				}
			}
		default: // The others are rare, and reflection is slow.
			values := reflect.ValueOf(flat)
			for i := range values.Len() {
				all = append(all, shapes.ConvertTo[float64](values.Index(i).Interface()))
			}
		}
	})
	return all, err
}

func floats[T int8 | int16 | int32 | int64 | uint8 | float32](flat []T) []float64 {
	all := make([]float64, len(flat))
	for i, x := range flat {
		all[i] = float64(x)
	}
	return all
}
