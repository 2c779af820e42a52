package compilecache

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Key identifies a program and everything that determines how it is compiled.
type Key [sha256.Size]byte

// String returns the key in hexadecimal digits, which also name its entry.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Hash computes a Key from parts.
type Hash struct{ sum hash.Hash }

// NewHash begins a key.
func NewHash() Hash { return Hash{sha256.New()} }

// Add adds a part. Its name and its length are hashed too, so that no part can be mistaken for
// another.
func (h Hash) Add(name string, value []byte) Hash {
	for _, text := range [][]byte{[]byte(name), value} {
		var size [8]byte
		binary.LittleEndian.PutUint64(size[:], uint64(len(text)))
		h.sum.Write(size[:])
		h.sum.Write(text)
	}
	return h
}

// Key returns the key of all parts.
func (h Hash) Key() (k Key) {
	h.sum.Sum(k[:0])
	return k
}
