package submit

import "testing"

func TestGPUsSet(t *testing.T) {
	tests := []struct {
		text string
		want GPUs
		ok   bool
	}{
		{"4", GPUs{Count: 4}, true},
		{"a100:4", GPUs{Count: 4, Kind: "a100"}, true},
		{"gpu:4", GPUs{Count: 4}, true},
		{"gpu:a100:4", GPUs{Count: 4, Kind: "a100"}, true},
		{"gpu", GPUs{Count: 1}, true},
		{"a100", GPUs{}, false},
		{"gpu:a100", GPUs{}, false},
		{":4", GPUs{}, false},
		{"shard:4:2", GPUs{}, false},
		{"", GPUs{}, false},
	}
	for _, test := range tests {
		var got GPUs
		if err := got.Set(test.text); (err == nil) != test.ok || got != test.want {
			t.Errorf("%q: %+v, %v; want %+v", test.text, got, err, test.want)
		}
	}
}
