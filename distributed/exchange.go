package distributed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Broadcast returns rank 0's data on every rank, and ignores the data of the other ranks. It is
// collective.
func (w *World) Broadcast(data []byte) ([]byte, error) {
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	if err := w.peers.Broadcast(length, 0); err != nil {
		return nil, fmt.Errorf("distributed: broadcast: %w", err)
	}
	if n := int(binary.LittleEndian.Uint64(length)); !w.IsMain() {
		data = make([]byte, n)
	}
	if err := w.peers.Broadcast(data, 0); err != nil {
		return nil, fmt.Errorf("distributed: broadcast %d bytes: %w", len(data), err)
	}
	return data, nil
}

// AllGather returns the data of every rank, in order of rank. The lengths may differ. It is
// collective.
func (w *World) AllGather(data []byte) ([][]byte, error) {
	lengths, err := w.peers.AllGather(binary.LittleEndian.AppendUint64(nil, uint64(len(data))))
	if err != nil {
		return nil, fmt.Errorf("distributed: all-gather: %w", err)
	}
	longest := 0
	for _, length := range lengths {
		longest = max(longest, int(binary.LittleEndian.Uint64(length)))
	}
	padded := make([]byte, longest)
	copy(padded, data)
	all, err := w.peers.AllGather(padded)
	if err != nil {
		return nil, fmt.Errorf("distributed: all-gather %d bytes: %w", longest, err)
	}
	for rank, length := range lengths {
		all[rank] = all[rank][:binary.LittleEndian.Uint64(length)]
	}
	return all, nil
}

// Together returns this rank's error. If this rank has none but another rank has, it returns an
// error that names that rank. Pass the error of an operation that can fail on a single rank through
// Together before the next collective, so that no rank waits for one that has given up. It is
// collective.
func (w *World) Together(err error) error {
	failed := make([]float64, w.Size())
	if err != nil {
		failed[w.Rank()] = 1
	}
	if reduceErr := w.AllReduceSum(failed); reduceErr != nil {
		return errors.Join(err, reduceErr)
	}
	if rank := slices.IndexFunc(failed, func(n float64) bool { return n > 0 }); rank >= 0 && err == nil {
		return fmt.Errorf("rank %d failed: see its log", rank)
	}
	return err
}

// OnMain runs f on rank 0. All ranks wait for it and return an error if it fails. It is collective.
func (w *World) OnMain(f func() error) error {
	var err error
	if w.IsMain() {
		err = f()
	}
	return w.Together(err)
}

// gather gives every rank the values of all ranks, encoded as JSON.
func gather[T any](w *World, mine T) ([]T, error) {
	text, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	texts, err := w.AllGather(text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank := range texts {
		if err := json.Unmarshal(texts[rank], &all[rank]); err != nil {
			return nil, fmt.Errorf("distributed: decode the value of rank %d: %w", rank, err)
		}
	}
	return all, nil
}
