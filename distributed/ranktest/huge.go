package ranktest

import (
	"testing"
	"unsafe"
)

// CheckHuge broadcasts and adds up more than 2^31 bytes, which MPI can't count with its 32 bits. It
// needs about 2 GB of memory for each rank. With -short, there are fewer.
func CheckHuge[C Comm](t *testing.T, c C, allReduce func(C, []int32) error) {
	t.Helper()
	const root = 1
	length := 1<<29 + 6
	if testing.Short() {
		length = 1<<17 + 6
	}
	values := make([]int32, length)
	value := func(i int) int32 { return int32(i*31) ^ int32(i>>7) }
	for i := range values {
		values[i] = value(i) + int32(c.Rank())
	}
	if err := allReduce(c, values); err != nil {
		t.Fatal(err)
	}
	ranks := int32(c.Size())
	for i, got := range values {
		if want := ranks*value(i) + ranks*(ranks-1)/2; got != want {
			t.Fatalf("sum %d of %d is %d, want %d", i, length, got, want)
		}
	}
	for i := range values {
		values[i] = value(i) * int32(c.Rank()) // Zeros, except on the root.
	}
	if err := c.Broadcast(bytesOf(values), root); err != nil {
		t.Fatal(err)
	}
	for i, got := range values {
		if want := value(i) * root; got != want {
			t.Fatalf("after the broadcast, value %d of %d is %d, want %d", i, length, got, want)
		}
	}
}

// bytesOf returns the memory of the values.
func bytesOf(values []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}
