package shuffle

import "math/rand/v2"

// Listed is the number of examples up to which an order is a list.
const Listed = listed

// Encrypted is an order without a list, of any length.
func Encrypted(n int, seed, stream uint64) Order {
	return Order{cipher: newCipher(uint64(n), rand.New(rand.NewPCG(seed, stream)))}
}
