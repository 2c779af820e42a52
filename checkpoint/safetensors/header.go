package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"
)

// maxHeader is the largest header that Python's library reads.
const maxHeader = 100_000_000

// Header describes the content of a file.
type Header struct {
	// Tensors are in the order of their bytes.
	Tensors []Tensor
	// Metadata is text for people and tools. It is nil if the file has none.
	Metadata map[string]string
	// DataStart is the offset in the file at which the bytes of the tensors begin.
	DataStart int64
}

// ReadHeader reads the header of a file with this size, and nothing after it. The returned tensors
// fill the rest of the file exactly, so the memory for them is limited by the file's size.
func ReadHeader(r io.Reader, size int64) (*Header, error) {
	text, err := readText(r, size)
	if err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	h := &Header{DataStart: 8 + int64(len(text))}
	if err := h.parse(text); err != nil {
		return nil, fmt.Errorf("safetensors: bad header: %w", err)
	}
	if err := h.check(size - h.DataStart); err != nil {
		return nil, fmt.Errorf("safetensors: bad header: %w", err)
	}
	return h, nil
}

func readText(r io.Reader, size int64) ([]byte, error) {
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, fmt.Errorf("no header: the file has %d bytes: %w", size, err)
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxHeader || int64(n) > size-8 {
		return nil, fmt.Errorf("a header of %d bytes in a file of %d: truncated, or not this format", n, size)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	if n == 0 || text[0] != '{' {
		return nil, errors.New("the header doesn't begin with {: not this format")
	}
	if !utf8.Valid(text) {
		return nil, errors.New("the header isn't UTF-8")
	}
	return text, nil
}

// parse reads the header's tokens one by one, because encoding/json accepts duplicate names, and
// names in another case.
func (h *Header) parse(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	names := map[string]bool{}
	err := object(d, func(name string) error {
		if names[name] {
			return fmt.Errorf("two fields are named %q", name)
		}
		names[name] = true
		if name == metadataKey {
			return h.parseMetadata(d)
		}
		t, err := parseTensor(d, name)
		h.Tensors = append(h.Tensors, t)
		return err
	})
	if err != nil {
		return err
	}
	if rest := bytes.TrimRight(text[d.InputOffset():], " "); len(rest) > 0 {
		return fmt.Errorf("%.20q after the end", rest)
	}
	return nil
}

func (h *Header) parseMetadata(d *json.Decoder) error {
	h.Metadata = map[string]string{}
	return object(d, func(name string) error {
		token, err := d.Token()
		if err != nil {
			return err
		}
		value, ok := token.(string)
		if _, twice := h.Metadata[name]; !ok || twice {
			return fmt.Errorf("%s: %q must be a string, and occur once", metadataKey, name)
		}
		h.Metadata[name] = value
		return nil
	})
}

func parseTensor(d *json.Decoder, name string) (Tensor, error) {
	t := Tensor{Name: name}
	var offsets []int64
	fields := map[string]any{"dtype": &t.DType, "shape": &t.Shape, "data_offsets": &offsets}
	err := object(d, func(field string) error {
		target, ok := fields[field]
		if !ok {
			return fmt.Errorf("tensor %q: an unknown or repeated field %q", name, field)
		}
		delete(fields, field)
		if err := decode(d, target); err != nil {
			return fmt.Errorf("tensor %q: %s: %w", name, field, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return t, err
	case len(fields) > 0 || t.Shape == nil || len(offsets) != 2:
		return t, fmt.Errorf("tensor %q: want dtype, shape and two data_offsets", name)
	}
	t.Begin, t.End = offsets[0], offsets[1]
	return t, checkName(name)
}

// decode decodes a value that must not contain null, which encoding/json would read as 0.
func decode(d *json.Decoder, target any) error {
	var text json.RawMessage
	if err := d.Decode(&text); err != nil {
		return err
	}
	if bytes.Contains(text, []byte("null")) {
		return errors.New("null")
	}
	return json.Unmarshal(text, target)
}

// object reads an object, and calls read to read the value of each name.
func object(d *json.Decoder, read func(name string) error) error {
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return errors.Join(fmt.Errorf("got %v, want an object", token), err)
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		if err := read(token.(string)); err != nil { // The decoder accepts nothing else as a name.
			return err
		}
	}
	_, err := d.Token()
	return err
}

// check compares the tensors with the size of the data: in order, they must fill it without a gap
// or an overlap.
func (h *Header) check(size int64) error {
	slices.SortStableFunc(h.Tensors, func(a, b Tensor) int { return cmp.Or(cmp.Compare(a.Begin, b.Begin), cmp.Compare(a.End, b.End)) })
	var at int64
	for _, t := range h.Tensors {
		want, err := t.ByteSize()
		if err != nil {
			return err
		}
		if t.Begin != at || t.End < t.Begin {
			return fmt.Errorf("tensor %q: bytes %d to %d, where %d is next: a gap or an overlap", t.Name, t.Begin, t.End, at)
		}
		if t.End-t.Begin != want {
			return fmt.Errorf("tensor %q: %d bytes for %s%v, which has %d", t.Name, t.End-t.Begin, t.DType, t.Shape, want)
		}
		at = t.End
	}
	if at != size {
		return fmt.Errorf("%d bytes of tensors, but %d bytes after the header: the file is truncated or has more", at, size)
	}
	return nil
}

// DType is the type of a tensor's numbers, as named in the format.
type DType string

// The format's types whose size is a whole number of bytes. All numbers are little-endian.
const (
	Bool   DType = "BOOL"
	U8     DType = "U8"
	I8     DType = "I8"
	F8E5M2 DType = "F8_E5M2"
	F8E4M3 DType = "F8_E4M3"
	I16    DType = "I16"
	U16    DType = "U16"
	F16    DType = "F16"
	BF16   DType = "BF16"
	I32    DType = "I32"
	U32    DType = "U32"
	F32    DType = "F32"
	C64    DType = "C64"
	F64    DType = "F64"
	I64    DType = "I64"
	U64    DType = "U64"
)

var sizes = map[DType]int64{
	Bool: 1, U8: 1, I8: 1, F8E5M2: 1, F8E4M3: 1,
	I16: 2, U16: 2, F16: 2, BF16: 2,
	I32: 4, U32: 4, F32: 4,
	C64: 8, F64: 8, I64: 8, U64: 8,
}

// Size returns the size of one number in bytes, or 0 if the type is unknown.
func (d DType) Size() int64 { return sizes[d] }
