package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// blockSize is that of the blocks that are exchanged: all ranks must give the same.
const blockSize = 2048

// exchange gives every rank each rank's value.
func exchange[T any](e Exchange, mine T) ([]T, error) {
	block, err := encode(mine)
	if err != nil {
		return nil, err
	}
	blocks, err := e.AllGather(block)
	if err != nil {
		return nil, fmt.Errorf("exchange addresses: %w", err)
	}
	// Nearly all of many ranks have nothing to say: that is not decoded a thousand times on each.
	nothing, err := encode(*new(T))
	if err != nil {
		return nil, err
	}
	all := make([]T, len(blocks))
	for rank, block := range blocks {
		if bytes.Equal(block, nothing) {
			continue
		}
		if err := json.Unmarshal(bytes.TrimRight(block, " "), &all[rank]); err != nil {
			return nil, fmt.Errorf("what rank %d says: %w", rank, err)
		}
	}
	return all, nil
}

// encode makes a block, filled up with spaces.
func encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(text) > blockSize {
		return nil, fmt.Errorf("%d bytes to exchange: at most %d", len(text), blockSize)
	}
	return append(text, bytes.Repeat([]byte{' '}, blockSize-len(text))...), nil
}

// exchangeTroubles tells every rank which could not connect.
func (w *Watch) exchangeTroubles(mine error) ([]string, error) {
	var text string
	if mine != nil {
		text = fmt.Sprintf("rank %d (%s): %v", w.config.Rank, w.config.Host, mine)
		text = text[:min(len(text), blockSize/8)]
	}
	all, err := exchange(w.config.Exchange, text)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(text string) bool { return text == "" }), nil
}
