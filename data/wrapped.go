package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"sync"

	"github.com/gomlx/gomlx/core/tensors"
)

// wrapped is a dataset that makes its examples from those of another one, which it embeds. Every
// dataset of this package that wraps another one is or embeds it: it implements all optional
// interfaces.
type wrapped struct {
	Dataset
	how
}

// how is how a dataset makes its examples from those of another one.
type how interface {
	// settings are what the examples depend on, besides the other's; "" for nothing.
	settings(ds Dataset) string
	// batch returns examples of ds, changed, for an epoch of a training run, or noEpoch.
	batch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error)
}

// noEpoch is the epoch of Batch.
const noEpoch = math.MinInt

// batchOf returns examples of ds in an epoch, or those of Batch.
func batchOf(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	if epoch == noEpoch {
		return ds.Batch(indices)
	}
	return EpochBatch(ds, epoch, indices)
}

var _ Epochs = wrapped{}

// Batch implements Dataset.
func (w wrapped) Batch(indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return w.batch(w.Dataset, noEpoch, indices)
}

// EpochBatch implements Epochs.
func (w wrapped) EpochBatch(epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	return w.batch(w.Dataset, epoch, indices)
}

// narrow implements narrowed.
func (w wrapped) narrow(o others) Dataset {
	w.Dataset = narrow(w.Dataset, o)
	if m, ok := w.how.(mixed); ok {
		m.among = &o
		w.how = m
	}
	return w
}

// Describe implements Described.
func (w wrapped) Describe() string { return Describe(w.Dataset) }

// Classes implements Classed.
func (w wrapped) Classes() []string { return Classes(w.Dataset) }

// Columns returns the other's columns.
func (w wrapped) Columns() (inputs, labels []string) { return Columns(w.Dataset) }

// Fingerprint implements Fingerprinted.
func (w wrapped) Fingerprint() string {
	settings := w.settings(w.Dataset)
	if settings == "" {
		return Fingerprint(w.Dataset)
	}
	return fingerprintOf(fmt.Appendf(nil, "%q %s", Fingerprint(w.Dataset), settings))
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

// Serial returns ds for concurrent use: it calls ds from one goroutine at a time. Wrap a dataset
// whose Batch can't be called concurrently, for example because it seeks in a file, before you
// split or augment it.
func Serial(ds Dataset) Dataset { return wrapped{ds, serial{new(sync.Mutex)}} }

// serial is shared by the parts of a narrowed dataset.
type serial struct{ mu *sync.Mutex }

func (serial) settings(Dataset) string { return "" }

func (s serial) batch(ds Dataset, epoch int, indices []int) (inputs, labels []*tensors.Tensor, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return batchOf(ds, epoch, indices)
}
