package distributed

import (
	"strings"
	"testing"
)

func TestChooseDevices(t *testing.T) {
	tests := []struct {
		name, want, platform string
		size, cpus           int
		devices              int
		err                  string
	}{
		{"a notebook", "", "cpu", 1, 8, 1, ""},
		{"all cores", "all", "cpu", 1, 4, 4, ""},
		{"a power of two", "all", "cpu", 1, 7, 4, ""},
		{"no more than eight", "all", "cpu", 1, 96, 8, ""},
		{"one core", "all", "cpu", 1, 1, 1, ""},
		{"all GPUs", "all", "cuda", 1, 4, allDevices, ""},
		{"all, as one rank of two", "all", "cpu", 2, 4, 1, ""},
		{"a number", "3", "cpu", 1, 2, 3, ""},
		{"a number, as one rank of two", "3", "cpu", 2, 2, 0, "a rank drives one device"},
		{"negative", "-1", "cpu", 1, 2, 0, "at least 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := chooseDevices(test.want, test.platform, test.size, test.cpus)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || got != test.devices {
				t.Errorf("got %d, %v; want %d", got, err, test.devices)
			}
		})
	}
}

func TestPartSplit(t *testing.T) {
	tests := []struct{ begin, end, batch, n, groupedEnd, size int }{
		{0, 100, 10, 2, 100, 5},
		{0, 103, 10, 2, 100, 5},
		{0, 103, 10, 3, 99, 3},
		{50, 53, 1000, 2, 50, 500},
		{0, 7, 2, 2, 6, 1},
		{0, 7, 1, 2, 0, 0}, // A batch of one can't be divided over two devices.
		{3, 4, 1, 3, 3, 0},
	}
	for _, test := range tests {
		grouped, rest := part{begin: test.begin, end: test.end, batchSize: test.batch}.split(test.n)
		if grouped.end != test.groupedEnd || grouped.batchSize != test.size || rest.begin != test.groupedEnd || rest.end != test.end {
			t.Errorf("%+v: grouped %+v, rest %+v", test, grouped, rest)
		}
	}
}
