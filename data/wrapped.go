package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
)

// wrapped is the dataset from which another one makes its examples. Every dataset of this package
// that wraps another one embeds it: it forwards what doesn't depend on what the wrapper does. The
// wrapper itself implements the other optional interfaces, Epochs, Fingerprinted and narrowed.
type wrapped struct{ Dataset }

// Describe implements Described.
func (w wrapped) Describe() string { return Describe(w.Dataset) }

// Classes implements Classed.
func (w wrapped) Classes() []string { return Classes(w.Dataset) }

// Columns returns the other's columns.
func (w wrapped) Columns() (inputs, labels []string) { return Columns(w.Dataset) }

// fingerprint returns that of a wrapper, which depends on these settings.
func (w wrapped) fingerprint(format string, settings ...any) string {
	return fingerprintOf(fmt.Appendf(nil, "%q ", Fingerprint(w.Dataset)), fmt.Appendf(nil, format, settings...))
}

// fingerprintOf returns a short hash.
func fingerprintOf(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		h.Write(part)
	}
	return sum(h)
}

// sum returns the beginning of a hash.
func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:32] }
