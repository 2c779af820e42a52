package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gonbatch/checkpoint/safetensors"
)

// file returns a header with its length, and n bytes of data.
func file(header string, n int) []byte {
	text := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(text, header...), make([]byte, n)...)
}

func TestReadHeader(t *testing.T) {
	tests := []struct {
		name, header string
		data         int
		want         []safetensors.Tensor
		err          string
	}{
		{name: "nothing", header: `{}`, want: nil},
		{name: "a scalar", header: `{"s":{"dtype":"F32","shape":[],"data_offsets":[0,4]}}`, data: 4,
			want: []safetensors.Tensor{{Name: "s", DType: safetensors.F32, Shape: []int{}, End: 4}}},
		{name: "an empty tensor", header: `{"e":{"dtype":"F32","shape":[0,3],"data_offsets":[0,0]}}`,
			want: []safetensors.Tensor{{Name: "e", DType: safetensors.F32, Shape: []int{0, 3}}}},
		{name: "padding, metadata, another order", header: `{"__metadata__":{"k":"v"}, "b":{"shape":[2],"data_offsets":[1,3],"dtype":"U8"},
			"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}}   `, data: 3,
			want: []safetensors.Tensor{{Name: "a", DType: safetensors.Bool, Shape: []int{1}, End: 1}, {Name: "b", DType: safetensors.U8, Shape: []int{2}, Begin: 1, End: 3}}},
		{name: "not an object", header: `[]`, err: "doesn't begin with {"},
		{name: "a leading space", header: ` {}`, err: "doesn't begin with {"},
		{name: "text behind", header: `{} {}`, err: "after the end"},
		{name: "cut", header: `{"a":{"dtype":"U8"`, err: "bad header"},
		{name: "twice", header: `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, data: 2, err: `two fields are named "a"`},
		{name: "a field twice", header: `{"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, data: 1, err: "repeated field"},
		{name: "a field in another case", header: `{"a":{"DType":"U8","shape":[1],"data_offsets":[0,1]}}`, data: 1, err: "unknown"},
		{name: "no shape", header: `{"a":{"dtype":"U8","data_offsets":[0,1]}}`, data: 1, err: "want dtype, shape"},
		{name: "null in a shape", header: `{"a":{"dtype":"U8","shape":[null],"data_offsets":[0,0]}}`, err: "null"},
		{name: "three offsets", header: `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}}`, data: 1, err: "two data_offsets"},
		{name: "an unknown type", header: `{"a":{"dtype":"F7","shape":[1],"data_offsets":[0,1]}}`, data: 1, err: `unknown type "F7"`},
		{name: "a fraction", header: `{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, data: 1, err: "shape"},
		{name: "a negative axis", header: `{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, data: 1, err: "negative"},
		{name: "an overflow", header: `{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, err: "too large"},
		{name: "a gap", header: `{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, data: 2, err: "a gap or an overlap"},
		{name: "an overlap", header: `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, data: 3, err: "a gap or an overlap"},
		{name: "backwards", header: `{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,-1]}}`, data: 1, err: "a gap or an overlap"},
		{name: "another size", header: `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, data: 4, err: "which has 8"},
		{name: "data missing", header: `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, data: 3, err: "truncated"},
		{name: "data left over", header: `{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, data: 5, err: "or has more"},
		{name: "metadata that isn't text", header: `{"__metadata__":{"k":1}}`, err: "must be a string"},
		{name: "not UTF-8", header: "{\"\xff\":{}}", err: "UTF-8"},
		{name: "half a character", header: `{"\ud83d":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, data: 1, err: "UTF-8"},
		{name: "no name", header: `{"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}`, data: 1, err: "has no name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := file(tt.header, tt.data)
			h, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, h.Tensors); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadHeaderTruncated(t *testing.T) {
	whole := file(`{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}`, 16)
	for n := range whole {
		if _, err := safetensors.ReadHeader(bytes.NewReader(whole[:n]), int64(n)); err == nil {
			t.Errorf("the first %d of %d bytes are taken for a whole file", n, len(whole))
		}
	}
	huge := append(binary.LittleEndian.AppendUint64(nil, math.MaxUint64), '{', '}')
	if _, err := safetensors.ReadHeader(bytes.NewReader(huge), int64(len(huge))); err == nil {
		t.Error("a header of 2^64-1 bytes is taken")
	}
}

func TestPlan(t *testing.T) {
	plan, err := safetensors.NewPlan([]safetensors.Tensor{
		{Name: "b", DType: safetensors.Bool, Shape: []int{3}},
		{Name: `quoted "/ü`, DType: safetensors.F32, Shape: []int{2, 2}},
		{Name: "a", DType: safetensors.F32},
		{Name: "wide", DType: safetensors.I64, Shape: []int{1}},
	}, map[string]string{"format": "pt"})
	if err != nil {
		t.Fatal(err)
	}
	if len(plan.Header())%8 != 0 {
		t.Errorf("a header of %d bytes: the data isn't aligned", len(plan.Header()))
	}
	h, err := safetensors.ReadHeader(bytes.NewReader(plan.Header()), plan.Size())
	if err != nil {
		t.Fatal(err)
	}
	want := []safetensors.Tensor{
		{Name: "wide", DType: safetensors.I64, Shape: []int{1}, End: 8},
		{Name: "a", DType: safetensors.F32, Shape: []int{}, Begin: 8, End: 12},
		{Name: `quoted "/ü`, DType: safetensors.F32, Shape: []int{2, 2}, Begin: 12, End: 28},
		{Name: "b", DType: safetensors.Bool, Shape: []int{3}, Begin: 28, End: 31},
	}
	if diff := cmp.Diff(want, h.Tensors); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"format": "pt"}, h.Metadata); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}

func TestPlanRefuses(t *testing.T) {
	one := func(name string, d safetensors.DType, shape ...int) safetensors.Tensor {
		return safetensors.Tensor{Name: name, DType: d, Shape: shape}
	}
	tests := []struct {
		name, err string
		tensors   []safetensors.Tensor
		metadata  map[string]string
	}{
		{name: "two of a name", tensors: []safetensors.Tensor{one("a", safetensors.U8), one("a", safetensors.F64)}, err: `named "a"`},
		{name: "the reserved name", tensors: []safetensors.Tensor{one("__metadata__", safetensors.U8)}, err: "reserves this name"},
		{name: "no type", tensors: []safetensors.Tensor{one("a", "")}, err: "unknown type"},
		{name: "not UTF-8", tensors: []safetensors.Tensor{one("\xff", safetensors.U8)}, err: "UTF-8"},
		{name: "too large together", err: "too large",
			tensors: []safetensors.Tensor{one("a", safetensors.U8, math.MaxInt64), one("b", safetensors.U8, math.MaxInt64)}},
		{name: "metadata that isn't UTF-8", metadata: map[string]string{"k": "\xff"}, err: "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := safetensors.NewPlan(tt.tensors, tt.metadata); err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

// FuzzReadHeader checks that any bytes are read or refused, and that a header that was read can be
// written and read again.
func FuzzReadHeader(f *testing.F) {
	f.Add(file(`{"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]}}`, 0))
	f.Add(file(`{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[3],"data_offsets":[4,7]}}`, 7))
	f.Add(file(`{}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := safetensors.ReadHeader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		plan, err := safetensors.NewPlan(h.Tensors, h.Metadata)
		if err != nil {
			t.Fatalf("read, but refused to write: %v", err)
		}
		if data := int64(len(data)) - h.DataStart; plan.Size()-int64(len(plan.Header())) != data {
			t.Fatalf("written with %d bytes of data, read with %d", plan.Size()-int64(len(plan.Header())), data)
		}
		again, err := safetensors.ReadHeader(bytes.NewReader(plan.Header()), plan.Size())
		if err != nil {
			t.Fatalf("written, but refused to read: %v", err)
		}
		if diff := cmp.Diff(plan.Tensors(), again.Tensors); diff != "" {
			t.Fatal(diff)
		}
	})
}
