package nbformat

import (
	"slices"
	"testing"
)

func TestPlaces(t *testing.T) {
	for line, want := range map[string][]string{
		"\tu.ipynb[cell 3]:2 +0x1d":                        {"u.ipynb[cell 3]:2"},
		"\tmain.main at my own.ipynb[cell 3]:3":            {"my own.ipynb[cell 3]:3"},
		"\tmain.(*a).b at /x/u.ipynb[cell 3]:3":            {"u.ipynb[cell 3]:3"},
		"\tu.ipynb[cell [7]]:2":                            {"u.ipynb[cell [7]]:2"},
		"\tnotebook/train/my own (2).ipynb[cell [7]]:12":   {"my own (2).ipynb[cell [7]]:12"},
		"\tx[cell 3].ipynb[cell 1]:2 +0x1d":                {"x[cell 3].ipynb[cell 1]:2"},
		"\ta.ipynb[cell 3]:1 b.ipynb[cell 1]:2":            {"a.ipynb[cell 3]:1 b.ipynb[cell 1]:2"},
		"n.go[cell 2]:1: bad, see n.go[cell [10]]:4":       {"n.go[cell 2]:1", "n.go[cell [10]]:4"},
		"2026/01/02 10:00:00 my own.ipynb[cell 3]:2: fail": {"own.ipynb[cell 3]:2"},
		"u.ipynb[cell 3]":                                  nil,
		"u.ipynb[cell x]:2":                                nil,
		"u.ipynb[cell [7]:2":                               nil,
	} {
		if got := Places(line); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
