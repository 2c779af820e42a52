package idx

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name    string
		content string
		rank    int
		size    []int
		values  []uint8
		wantErr string
	}{
		{name: "labels", content: "\x00\x00\x08\x01\x00\x00\x00\x03abc", rank: 1, size: []int{3}, values: []uint8("abc")},
		{name: "images", content: "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x02abcd", rank: 3, size: []int{2, 1, 2}, values: []uint8("abcd")},
		{name: "nothing", wantErr: "not an IDX file: 0 bytes"},
		{name: "a web page", content: "<html>", rank: 1, wantErr: "not an IDX file: it begins with 3c 68"},
		{name: "still compressed", content: "\x1f\x8b\x08\x00", rank: 1, wantErr: "gunzip"},
		{name: "floats", content: "\x00\x00\x0d\x01\x00\x00\x00\x01abcd", rank: 1, wantErr: "type 0x0d"},
		{name: "images for labels", content: "\x00\x00\x08\x03", rank: 1, wantErr: "3 axes; expected 1"},
		{name: "ends in the head", content: "\x00\x00\x08\x03\x00\x00\x00\x02\x00", rank: 3, wantErr: "truncated: it ends within the sizes of its 3 axes"},
		{name: "ends early", content: "\x00\x00\x08\x01\x00\x00\x00\x03ab", rank: 1, wantErr: "truncated: 2 of 3 elements"},
		{name: "goes on", content: "\x00\x00\x08\x01\x00\x00\x00\x03abcde", rank: 1, wantErr: "2 bytes follow the last of 3 elements"},
		{name: "empty", content: "\x00\x00\x08\x01\x00\x00\x00\x00", rank: 1, wantErr: "empty: axis 0"},
		{name: "hostile sizes", content: "\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", rank: 3, wantErr: "make no sense"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			size, values, err := parse([]byte(tc.content), tc.rank)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Errorf("error %v, want %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.size, size) + cmp.Diff(tc.values, values); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x00\x00\x08\x01\x00\x00\x00\x03abc"), 1)
	f.Add([]byte("\x00\x00\x08\x03\xff\xff\xff\xff"), 3)
	f.Fuzz(func(t *testing.T, content []byte, rank int) {
		size, values, err := parse(content, rank)
		if err != nil {
			return
		}
		n := 1
		for _, s := range size {
			n *= s
		}
		if n != len(values) || len(size) != rank {
			t.Errorf("sizes %v for rank %d and %d values", size, rank, len(values))
		}
	})
}
