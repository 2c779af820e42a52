package distributed

import (
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
