package trainer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/internal/plural"
)

// predicted has the predictions for some examples, in memory.
type predicted struct {
	Examples int
	Outputs  []output
	values   [][]byte // Of each output, one example after the other.
}

// output is what the model predicts for one example.
type output struct {
	DType      dtypes.DType
	Dimensions []int
}

func (o output) equals(other output) bool {
	return o.DType == other.DType && slices.Equal(o.Dimensions, other.Dimensions)
}

// of returns the shape of an output of n examples.
func (o output) of(n int) shapes.Shape {
	return shapes.Make(o.DType, slices.Concat([]int{n}, o.Dimensions)...)
}

// predictedFrom copies the predictions for n examples.
func predictedFrom(n int, predictions []*tensors.Tensor) (predicted, error) {
	all := predicted{Examples: n}
	for i, p := range predictions {
		shape := p.Shape()
		if shape.Rank() == 0 || shape.Dimensions[0] != n {
			return predicted{}, fmt.Errorf("the model's prediction %d for %s is %s: its first axis must be the example", i, plural.Of(n, "example"), shape)
		}
		if shape.DType.IsPacked() {
			return predicted{}, fmt.Errorf("the model's prediction %d is %s, several of which are in a byte: convert it to %s in the model", i, shape.DType, dtypes.Int8)
		}
		var values []byte
		if !shape.IsZeroSize() {
			if err := p.ConstBytes(func(data []byte) { values = bytes.Clone(data) }); err != nil {
				return predicted{}, err
			}
		}
		all.Outputs, all.values = append(all.Outputs, output{shape.DType, shape.Dimensions[1:]}), append(all.values, values)
	}
	return all, nil
}

// encoded returns the predictions as bytes: the length of a JSON description, the description, and
// the values. Without examples, there are no bytes.
func (p predicted) encoded() ([]byte, error) {
	if p.Examples == 0 {
		return nil, nil
	}
	description, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(description)))
	return slices.Concat(append([][]byte{length, description}, p.values...)...), nil
}

var errPredicted = errors.New("the predictions of another rank arrived with the wrong size: all ranks must run the same program")

// decoded is the inverse of encoded. The predictions share the memory of the data.
func decoded(data []byte) (p predicted, err error) {
	if len(data) == 0 {
		return predicted{}, nil
	}
	if len(data) < 8 || binary.LittleEndian.Uint64(data) > uint64(len(data)-8) {
		return predicted{}, errPredicted
	}
	description := data[8 : 8+binary.LittleEndian.Uint64(data)]
	if err := json.Unmarshal(description, &p); err != nil {
		return predicted{}, errors.Join(errPredicted, err)
	}
	data = data[8+len(description):]
	for _, o := range p.Outputs {
		size := int(o.of(p.Examples).ByteSize())
		if size > len(data) {
			return predicted{}, errPredicted
		}
		p.values, data = append(p.values, data[:size:size]), data[size:]
	}
	if len(data) > 0 {
		return predicted{}, errPredicted
	}
	return p, nil
}

// add appends the predictions for more examples, which have the same outputs.
func (p *predicted) add(more predicted) {
	if p.Examples == 0 {
		*p = predicted{Outputs: more.Outputs, values: make([][]byte, len(more.values))}
	}
	p.Examples += more.Examples
	for i, values := range more.values {
		p.values[i] = append(p.values[i], values...)
	}
}

// take removes the predictions for the first n examples.
func (p *predicted) take(n int) (taken predicted) {
	taken = predicted{Examples: n, Outputs: p.Outputs}
	for i, o := range p.Outputs {
		size := int(o.of(n).ByteSize())
		taken.values = append(taken.values, p.values[i][:size])
		p.values[i] = p.values[i][size:]
	}
	p.Examples -= n
	return taken
}

// tensors returns the predictions as the model returned them.
func (p predicted) tensors() (all []*tensors.Tensor, err error) {
	for i, o := range p.Outputs {
		one := tensors.FromShape(o.of(p.Examples))
		all = append(all, one)
		if one.Shape().IsZeroSize() {
			continue
		}
		if err := one.MutableBytes(func(data []byte) { copy(data, p.values[i]) }); err != nil {
			return all, err
		}
	}
	return all, nil
}
