package tarset_test

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"gonbatch/data/tarset"
)

// npy returns an array in version 1 or 2 of the format.
func npy(version byte, dtype, shape string, values int) string {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }\n", dtype, shape)
	size := binary.LittleEndian.AppendUint16(nil, uint16(len(head)))
	if version > 1 {
		size = binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	}
	return "\x93NUMPY" + string([]byte{version, 0}) + string(size) + head + string(bytes.Repeat([]byte{1}, values))
}

// TestDamagedArrays: an array that doesn't have the bytes that its head says is refused, without
// memory for what it says.
func TestDamagedArrays(t *testing.T) {
	for _, tt := range []struct{ name, content, want string }{
		{"bytes", npy(1, "|u1", "2, 3", 6), ""},
		{"one value", npy(1, "<f4", "", 4), ""},
		{"one axis", npy(2, "<f8", "3,", 24), ""},
		{"no values", npy(1, "<i4", "0, 5", 0), ""},
		{"truncated", npy(1, "<f4", "2, 3", 23), ".npy: an array of shape (2, 3) with values of 4 bytes has 23 bytes instead of 24: it is truncated or damaged"},
		{"too long", npy(2, "<f4", "2, 3", 25), "has 25 bytes instead of 24"},
		{"larger than the memory", npy(1, "<f4", "1000000, 1000000", 24), "has 24 bytes instead of 4000000000000"},
		{"larger than any memory", npy(1, "<f4", "4294967296, 4294967296", 24), "has 24 bytes instead of 73786976294838206464"},
		{"a long number", npy(1, "<f4", "99999999999999999999", 24), "has 24 bytes instead of 399999999999999999996"},
		{"no head", "\x93NUMPY\x01\x00\xff", "failed to read header length"},
		{"a long head", "\x93NUMPY\x01\x00\xff\xff{}", "failed to read header"},
		{"text", npy(1, "<U5", "1,", 20), "unsupported NumPy dtype"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			shard := pack(t, tar.FormatPAX, member{name: "a.npy", content: tt.content})
			set, err := tarset.Open(filepath.Join(write(t, shard), "0.tar"), tarset.Config{Inputs: []tarset.Field{tarset.NumPy()}})
			if err != nil {
				t.Fatal(err)
			}
			inputs, _, err := set.Batch([]int{0})
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("got %v", err)
			case tt.want == "" && inputs[0].DType().Size() == 1 && tensors.MustCopyFlatData[uint8](inputs[0])[5] != 1:
				t.Errorf("got %v", inputs[0])
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
