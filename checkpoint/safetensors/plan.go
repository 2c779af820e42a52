package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Plan is the layout of a file to be written: its header and the order of its tensors.
type Plan struct {
	header  []byte
	tensors []Tensor
	size    int64
}

// NewPlan lays out tensors in a file: the largest number types first, so that each tensor begins
// aligned, then by name. It ignores Begin and End of the tensors. The metadata is text for people
// and tools, and may be nil.
func NewPlan(tensors []Tensor, metadata map[string]string) (*Plan, error) {
	p := &Plan{tensors: slices.Clone(tensors)}
	slices.SortFunc(p.tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(b.DType.Size(), a.DType.Size()), cmp.Compare(a.Name, b.Name))
	})
	if err := p.place(); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	if err := p.encode(metadata); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return p, nil
}

// Header returns the bytes at the beginning of the file.
func (p *Plan) Header() []byte { return p.header }

// Tensors returns the tensors in the order in which their bytes follow the header, without gaps.
func (p *Plan) Tensors() []Tensor { return p.tensors }

func (p *Plan) place() error {
	names := map[string]bool{}
	for i := range p.tensors {
		t := &p.tensors[i]
		if err := checkName(t.Name); err != nil {
			return err
		}
		if names[t.Name] {
			return fmt.Errorf("two tensors are named %q", t.Name)
		}
		names[t.Name] = true
		size, err := t.ByteSize()
		if err != nil {
			return err
		}
		t.Begin, t.End = p.size, p.size+size
		if t.End < t.Begin {
			return fmt.Errorf("tensor %q: all tensors together are too large", t.Name)
		}
		p.size = t.End
	}
	return nil
}

// entry is what a header says about a tensor.
type entry struct {
	DType   DType   `json:"dtype"`
	Shape   []int   `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// encode writes the header, aligned to 8 bytes.
func (p *Plan) encode(metadata map[string]string) error {
	fields := map[string]any{}
	if metadata != nil {
		for key, value := range metadata {
			if !utf8.ValidString(key) || !utf8.ValidString(value) {
				return fmt.Errorf("metadata %q: it isn't UTF-8", key)
			}
		}
		fields[metadataKey] = metadata
	}
	for _, t := range p.tensors {
		fields[t.Name] = entry{t.DType, append([]int{}, t.Shape...), []int64{t.Begin, t.End}}
	}
	text, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	for len(text)%8 != 0 {
		text = append(text, ' ')
	}
	if len(text) > maxHeader {
		return fmt.Errorf("the header has %d bytes, more than the %d that readers accept: use fewer or shorter names", len(text), maxHeader)
	}
	p.header = append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...)
	return nil
}
