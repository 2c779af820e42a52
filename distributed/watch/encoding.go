package watch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"
)

// A hub gets two states a second from each rank, and the first messages of a thousand ranks at
// once. So states have a compact form, which needs no description of its types. The other messages
// are rare, and JSON.

// The first byte of a report.
const (
	withState = iota + 1
	withoutState
)

// MarshalBinary encodes the report.
func (r report) MarshalBinary() ([]byte, error) {
	if r.State != nil {
		return r.State.appendTo([]byte{withState}), nil
	}
	type plain report // Without this method.
	text, err := json.Marshal(plain(r))
	return append([]byte{withoutState}, text...), err
}

var errMalformed = errors.New("a malformed message: do all ranks run the same program?")

// UnmarshalBinary decodes a report.
func (r *report) UnmarshalBinary(data []byte) error {
	switch {
	case len(data) > 0 && data[0] == withState:
		in := numbers{rest: data[1:]}
		state := in.state()
		r.State = &state
		return in.err
	case len(data) > 0 && data[0] == withoutState:
		type plain report
		return json.Unmarshal(data[1:], (*plain)(r))
	}
	return errMalformed
}

// The flags of a state, in the order in which appendTo has them.
const (
	flagBusy = 1 << iota
	flagClosing
	flagTold
)

func (s State) appendTo(b []byte) []byte {
	flags := byte(0)
	for i, set := range []bool{s.Busy, s.Closing, s.Told} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, flags)
	b = binary.AppendVarint(b, s.Step)
	b = binary.AppendUvarint(b, s.Entered)
	b = binary.AppendUvarint(b, s.Left)
	b = binary.AppendVarint(b, int64(s.Since))
	b = s.Current.appendTo(b)
	b = binary.AppendUvarint(b, uint64(len(s.Recent)))
	for _, c := range s.Recent {
		b = c.appendTo(b)
	}
	b = appendText(b, s.Problem)
	b = appendText(b, s.Alone)
	b = binary.AppendVarint(b, int64(s.AloneFor))
	return binary.AppendVarint(b, int64(s.Moved))
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func (c Collective) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, c.Number)
	for _, number := range []int64{int64(c.Kind), int64(c.Type), c.Count, c.Detail} {
		b = binary.AppendVarint(b, number)
	}
	return b
}

// numbers reads what the functions above have written. After an error, all numbers are 0.
type numbers struct {
	rest []byte
	err  error
}

func (n *numbers) state() State {
	flags := n.natural()
	s := State{Busy: flags&flagBusy != 0, Closing: flags&flagClosing != 0, Told: flags&flagTold != 0}
	s.Step, s.Entered, s.Left, s.Since = n.whole(), n.natural(), n.natural(), time.Duration(n.whole())
	s.Current = n.collective()
	for range n.length() {
		s.Recent = append(s.Recent, n.collective())
	}
	s.Problem, s.Alone = n.text(), n.text()
	s.AloneFor, s.Moved = time.Duration(n.whole()), time.Duration(n.whole())
	return s
}

func (n *numbers) text() string {
	size := n.length()
	text := string(n.rest[:size])
	n.rest = n.rest[size:]
	return text
}

func (n *numbers) collective() Collective {
	return Collective{Number: n.natural(), Kind: Kind(n.whole()), Type: int(n.whole()), Count: n.whole(), Detail: n.whole()}
}

// length reads a number of things that follow, of at least one byte each.
func (n *numbers) length() int {
	size := n.natural()
	if size > uint64(len(n.rest)) {
		n.fail()
		return 0
	}
	return int(size)
}

func (n *numbers) natural() uint64 {
	value, size := binary.Uvarint(n.rest)
	if size <= 0 {
		n.fail()
		return 0
	}
	n.rest = n.rest[size:]
	return value
}

func (n *numbers) whole() int64 {
	value, size := binary.Varint(n.rest)
	if size <= 0 {
		n.fail()
		return 0
	}
	n.rest = n.rest[size:]
	return value
}

func (n *numbers) fail() { n.rest, n.err = nil, errMalformed }
