package watch

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gonbatch/distributed/network"
)

// While the watch starts, a thousand ranks exchange as little as possible: in a ring of
// connections, an all-gather passes every rank's data through all other ranks.

// shareKey gives every rank the key, and reports whether all ranks can reach one another through
// this machine's loopback address.
func (w *Watch) shareKey() (local bool, err error) {
	here := network.Here()
	w.key = network.NewKey()
	shared := slices.Concat(w.key, w.key.For(here))
	if err := w.config.Exchange.Broadcast(shared, 0); err != nil {
		return false, fmt.Errorf("share a key: %w", err)
	}
	w.key = shared[:len(w.key)]
	mine := []byte{0}
	if bytes.Equal(w.key.For(here), shared[len(w.key):]) {
		mine[0] = 1
	}
	all, err := w.config.Exchange.AllGather(mine)
	if err != nil {
		return false, fmt.Errorf("compare the ranks' machines: %w", err)
	}
	return !slices.ContainsFunc(all, func(same []byte) bool { return same[0] == 0 }), nil
}

// blockSize is the size of an encoded place, because all ranks must pass the same length.
const blockSize = 2048

// exchangePlace gives every rank a hub's place.
func (w *Watch) exchangePlace(hub int, mine place) (place, error) {
	var found place
	block, err := encode(mine)
	if err != nil { // The others wait for this rank, so it tells them.
		block, err = encode(place{Trouble: err.Error()})
	}
	if err != nil {
		return found, err
	}
	if err := w.config.Exchange.Broadcast(block, hub); err != nil {
		return found, fmt.Errorf("exchange addresses: %w", err)
	}
	if err := json.Unmarshal(bytes.TrimRight(block, " "), &found); err != nil {
		return found, fmt.Errorf("decode the place of rank %d: %w", hub, err)
	}
	return found, nil
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

// maxTroubles limits the errors that are exchanged: they are usually all alike. maxTrouble limits
// the text of one.
const maxTroubles, maxTrouble = 8, 256

// exchangeTroubles gives every rank the errors of the ranks that could not connect.
func (w *Watch) exchangeTroubles(mine error) ([]string, error) {
	var text string
	if mine != nil {
		text = fmt.Sprintf("rank %d (%s): %v", w.config.Rank, w.config.Host, mine)
		text = strings.ToValidUTF8(text[:min(len(text), maxTrouble)], "")
	}
	lengths, err := w.config.Exchange.AllGather(binary.LittleEndian.AppendUint16(nil, uint16(len(text))))
	if err != nil {
		return nil, fmt.Errorf("exchange errors: %w", err)
	}
	var troubles []string
	more := 0
	for rank, length := range lengths {
		part := make([]byte, binary.LittleEndian.Uint16(length))
		if len(part) > 0 && len(troubles) == maxTroubles {
			more++
		}
		if len(part) == 0 || more > 0 {
			continue
		}
		copy(part, text) // Only the root's matters.
		if err := w.config.Exchange.Broadcast(part, rank); err != nil {
			return nil, fmt.Errorf("exchange errors: %w", err)
		}
		troubles = append(troubles, string(part))
	}
	if more > 0 {
		troubles = append(troubles, fmt.Sprintf("and %d more ranks", more))
	}
	return troubles, nil
}
