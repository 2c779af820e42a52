// Package shuffle has random orders of any number of examples. An order is determined by a seed,
// and says which example is at a place without listing those before it, so that a loader can begin
// anywhere.
//
//	order := shuffle.Random(1_000_000_000, seed, epoch)
//	first := order.At(0)
//
// An order of up to a million examples is a list, drawn by math/rand. For more examples, a place is
// encrypted, which needs no memory. Neither is for secrets.
package shuffle

import "math/rand/v2"

// listed is the number of examples up to which an order is a list, of at most 8 MB.
const listed = 1 << 20

// Order is an order of the numbers from 0 to n-1. It may be used concurrently.
type Order struct {
	list   []int
	cipher *cipher
}

// Sorted is the order 0, 1, 2 and so on.
func Sorted() Order { return Order{} }

// Random is an order of n numbers. Orders of other seeds or streams are independent of it. It is
// the same on all machines.
func Random(n int, seed, stream uint64) Order {
	random := rand.New(rand.NewPCG(seed, stream))
	if n <= listed {
		return Order{list: random.Perm(n)}
	}
	return Order{cipher: newCipher(uint64(n), random)}
}

// At returns the number at place i, from 0 to n-1.
func (o Order) At(i int) int {
	switch {
	case o.list != nil:
		return o.list[i]
	case o.cipher != nil:
		return int(o.cipher.at(uint64(i)))
	}
	return i
}
