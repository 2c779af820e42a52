package watch

import "testing"

// TestCollectiveString: reports name each kind of collective and each type that programs have.
func TestCollectiveString(t *testing.T) {
	tests := map[string]Collective{
		"all-reduce 17 (421642 float32)":                              {17, AllReduce, Float32, 421642, 0},
		"all-gather 3 (7 bfloat16)":                                   {3, AllGather, BFloat16, 7, 0},
		"all-gather 4 (7 float16)":                                    {4, AllGather, Float16, 7, 0},
		"reduce-scatter 18 (9 float64)":                               {18, ReduceScatter, Float64, 9, 0},
		"broadcast 1 (5 bytes)":                                       {1, Broadcast, Bytes, 5, 0},
		"barrier 2":                                                   {2, Barrier, Bytes, 0, 0},
		"all-reduce 5 (1 elements of type 99)":                        {5, AllReduce, 99, 1, 0},
		"reduce-scatter 6 (2 int32)":                                  {6, ReduceScatter, Int32, 2, 0},
		"collective 7 (2 int64)":                                      {7, 42, Int64, 2, 0},
		"all-reduce 8 (maximum of 1 int32)":                           {8, AllReduce, Int32, 1, 2},
		"broadcast 9 (4 float32 from 3)":                              {9, Broadcast, Float32, 4, 3 << 2},
		"all-to-all 10 (4 float32, in groups #0000002a)":              {10, AllToAll, Float32, 4, 42 << 31},
		"reduce-scatter 11 (minimum of 2 int64, in groups #ffffffff)": {11, ReduceScatter, Int64, 2, 1 | 0xffffffff<<31},
	}
	for want, c := range tests {
		if got := c.String(); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}
