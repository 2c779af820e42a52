package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
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

// Size returns the size of the whole file in bytes.
func (p *Plan) Size() int64 { return int64(len(p.header)) + p.size }

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

// encode writes the header by hand where the order of the fields matters: tensors stay in the order
// of their bytes.
func (p *Plan) encode(metadata map[string]string) error {
	b := bytes.NewBuffer(make([]byte, 8))
	b.WriteByte('{')
	if metadata != nil {
		for key, value := range metadata {
			if !utf8.ValidString(key) || !utf8.ValidString(value) {
				return fmt.Errorf("metadata %q: it isn't UTF-8", key)
			}
		}
		if err := field(b, metadataKey, metadata); err != nil {
			return err
		}
	}
	for _, t := range p.tensors {
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		err := field(b, t.Name, struct {
			DType   DType    `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{t.DType, shape, [2]int64{t.Begin, t.End}})
		if err != nil {
			return err
		}
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	p.header = b.Bytes()
	n := len(p.header) - 8
	if n > maxHeader {
		return fmt.Errorf("the header has %d bytes, more than the %d that readers accept: use fewer or shorter names", n, maxHeader)
	}
	binary.LittleEndian.PutUint64(p.header, uint64(n))
	return nil
}

func field(b *bytes.Buffer, name string, value any) error {
	if b.Bytes()[b.Len()-1] != '{' {
		b.WriteByte(',')
	}
	key, err := json.Marshal(name)
	text, valueErr := json.Marshal(value)
	if err := errors.Join(err, valueErr); err != nil {
		return err
	}
	b.Write(key)
	b.WriteByte(':')
	b.Write(text)
	return nil
}
