package watch

import "testing"

// TestCollectiveString: reports name each kind of collective and each type that programs have.
func TestCollectiveString(t *testing.T) {
	tests := map[string]Collective{
		"all-reduce 17 (421642 float32)":       {17, AllReduce, Float32, 421642},
		"all-gather 3 (7 bfloat16)":            {3, AllGather, BFloat16, 7},
		"all-gather 4 (7 float16)":             {4, AllGather, Float16, 7},
		"reduce-scatter 18 (9 float64)":        {18, ReduceScatter, Float64, 9},
		"broadcast 1 (5 bytes)":                {1, Broadcast, Bytes, 5},
		"barrier 2":                            {2, Barrier, Bytes, 0},
		"all-reduce 5 (1 elements of type 99)": {5, AllReduce, 99, 1},
		"reduce-scatter 6 (2 int32)":           {6, ReduceScatter, Int32, 2},
		"collective 7 (2 int64)":               {7, 42, Int64, 2},
	}
	for want, c := range tests {
		if got := c.String(); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}
