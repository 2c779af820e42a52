package distributed

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"gonbatch/internal/solo"
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
	lengths, err := w.lengths(data)
	if err != nil {
		return nil, fmt.Errorf("distributed: all-gather: %w", err)
	}
	longest := slices.Max(lengths)
	padded := make([]byte, longest)
	copy(padded, data)
	all, err := w.peers.AllGather(padded)
	if err != nil {
		return nil, fmt.Errorf("distributed: all-gather %d bytes: %w", longest, err)
	}
	for rank, length := range lengths {
		all[rank] = all[rank][:length]
	}
	return all, nil
}

// lengths returns the length of each rank's data.
func (w *World) lengths(data []byte) ([]int, error) {
	texts, err := w.peers.AllGather(binary.LittleEndian.AppendUint64(nil, uint64(len(data))))
	all := make([]int, len(texts))
	for rank, text := range texts {
		all[rank] = int(binary.LittleEndian.Uint64(text))
	}
	return all, err
}

// GatherOnMain calls f on rank 0 with the data of every rank, in order of rank. The lengths may
// differ. It suits large data: a rank holds the data of only one other rank at a time. f must not
// keep it.
// After an error of f, all ranks return an error. It is collective, but f must not call anything
// collective. If f may take minutes, use Alone in it.
func (w *World) GatherOnMain(data []byte, f func(rank int, data []byte) error) error {
	lengths, err := w.lengths(data)
	if err != nil {
		return fmt.Errorf("distributed: gather: %w", err)
	}
	theirs := make([]byte, slices.Max(lengths))
	var failed error
	for rank, length := range lengths {
		part := data
		if rank != w.Rank() {
			part = theirs[:length]
		}
		if rank > 0 && length > 0 { // Rank 0 has its own.
			if err := w.peers.Broadcast(part, rank); err != nil {
				return fmt.Errorf("distributed: gather %d bytes of rank %d: %w", length, rank, err)
			}
		}
		if w.IsMain() && failed == nil {
			failed = f(rank, part)
		}
	}
	return w.Together(failed)
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

// EndTogether is like Together, for an error that may be that of a context: if the context of any
// rank has ended, all ranks return context.Canceled. It is collective.
func (w *World) EndTogether(err error) error {
	cancelled := []float64{0}
	if errors.Is(err, context.Canceled) {
		cancelled[0], err = 1, nil
	}
	if err := w.AllReduceSum(cancelled); err != nil {
		return err
	}
	if err := w.Together(err); err != nil {
		return err
	}
	if cancelled[0] > 0 {
		return context.Canceled
	}
	return nil
}

// OnMain runs f on rank 0. All ranks wait for it, as long as it takes, and return an error if it
// fails. It is collective, but f must not call anything collective.
//
// Nobody can tell whether f is slow or hangs, so a rank 0 that hangs there makes the job wait until
// its time limit. If its process dies or is stopped, the job ends within seconds as always.
func (w *World) OnMain(f func() error) error {
	var err error
	if w.IsMain() {
		err = w.Alone("OnMain"+calledAt(), f)
	}
	return w.Together(err)
}

// Alone runs f, during which this rank may take as long as it needs: other ranks that wait for it
// in a collective don't take it for stuck. Use it for long work on some ranks only; what says in
// reports what they do, such as "unpacks the images". It is not collective, and f must not call
// anything collective. What OnMain says of a hang holds here too.
func (w *World) Alone(what string, f func() error) error {
	defer solo.Begin(what)()
	return f()
}

// calledAt returns where the caller of the calling function is, such as " at train.go:12".
func calledAt() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return ""
	}
	return fmt.Sprintf(" at %s:%d", filepath.Base(file), line)
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
