package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// blockSize is the size of the exchanged blocks, because all ranks must pass the same length.
const blockSize = 2048

// exchange gives every rank the values of all ranks.
func exchange[T any](e Exchange, mine T) ([]T, error) {
	block, err := encode(mine)
	if err != nil {
		return nil, err
	}
	blocks, err := e.AllGather(block)
	if err != nil {
		return nil, fmt.Errorf("exchange addresses: %w", err)
	}
	// If there are many ranks, nearly all values are empty. Don't decode a thousand of them.
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
			return nil, fmt.Errorf("decode the value of rank %d: %w", rank, err)
		}
	}
	return all, nil
}

// encode encodes a value as a block padded with spaces.
func encode(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	if len(text) > blockSize {
		return nil, fmt.Errorf("%d bytes to exchange, more than %d", len(text), blockSize)
	}
	return append(text, bytes.Repeat([]byte{' '}, blockSize-len(text))...), nil
}

// exchangeTroubles gives every rank the errors of the ranks that could not connect.
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
