package shuffle

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// rounds is twice what Luby and Rackoff need for an order that can't be told from a random one (How
// to Construct Pseudorandom Permutations from Pseudorandom Functions, 1988).
const rounds = 8

// cipher is a permutation of the numbers below n: a Feistel network on pairs of a left number below
// width and a right one below height, with sums instead of exclusive ors. There are a few more
// pairs than numbers; those are followed until they lead to a number (J. Black and P. Rogaway,
// Ciphers with Arbitrary Finite Domains, 2002: the generalized Feistel cipher and cycle walking).
type cipher struct {
	n, width, height uint64
	keys             [rounds]uint64
}

func newCipher(n uint64, random *rand.Rand) *cipher {
	width := uint64(math.Sqrt(float64(n)))
	c := &cipher{n: n, width: width, height: (n + width - 1) / width}
	for i := range c.keys {
		c.keys[i] = random.Uint64()
	}
	return c
}

// at returns what the number at a place is.
func (c *cipher) at(place uint64) uint64 {
	if place >= c.n {
		panic(fmt.Errorf("shuffle: place %d of %d", place, c.n))
	}
	for {
		if place = c.encrypt(place); place < c.n {
			return place
		}
	}
}

// encrypt permutes the numbers below width times height.
func (c *cipher) encrypt(x uint64) uint64 {
	left, right := x%c.width, x/c.width
	for i := 0; i < rounds; i += 2 {
		left = add(left, below(mix(right^c.keys[i]), c.width), c.width)
		right = add(right, below(mix(left^c.keys[i+1]), c.height), c.height)
	}
	return left + right*c.width
}

// add adds two numbers below n, modulo n.
func add(a, b, n uint64) uint64 {
	if sum := a + b; sum < n {
		return sum
	}
	return a + b - n
}

// below turns random bits into a random number below n.
func below(random, n uint64) uint64 {
	number, _ := bits.Mul64(random, n)
	return number
}

// mix makes each bit of the result depend on all bits of x (the finalizer of SplitMix64: Steele,
// Lea and Flood, Fast Splittable Pseudorandom Number Generators, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
