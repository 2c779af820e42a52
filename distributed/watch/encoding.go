package watch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
)

// A hub gets two states a second from each rank, and the first messages of a thousand ranks at
// once. So states are binary, without a description of their types. The other messages are rare,
// and JSON.

// The first byte of a report.
const (
	withState = iota + 1
	withoutState
)

// MarshalBinary encodes the report.
func (r report) MarshalBinary() ([]byte, error) {
	if r.State != nil {
		return r.State.appendTo([]byte{withState})
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
		r.State = &State{}
		return r.State.read(data[1:])
	case len(data) > 0 && data[0] == withoutState:
		type plain report
		return json.Unmarshal(data[1:], (*plain)(r))
	}
	return errMalformed
}

// sizes are how many collectives and bytes of texts follow the fixed part of a state.
type sizes struct{ Recent, Problem, Alone uint32 }

// fixed are the parts of a state whose size is always the same.
func (s *State) fixed() []any {
	return []any{&s.Step, &s.Busy, &s.Entered, &s.Left, &s.Since, &s.Current, &s.Closing, &s.Told, &s.AloneFor, &s.Moved}
}

func (s *State) appendTo(b []byte) (_ []byte, err error) {
	for _, part := range append(s.fixed(), sizes{uint32(len(s.Recent)), uint32(len(s.Problem)), uint32(len(s.Alone))}, s.Recent) {
		if b, err = binary.Append(b, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	return append(b, s.Problem+s.Alone...), nil
}

func (s *State) read(data []byte) error {
	var follows sizes
	for _, part := range append(s.fixed(), &follows) {
		n, err := binary.Decode(data, binary.LittleEndian, part)
		if err != nil {
			return errMalformed
		}
		data = data[n:]
	}
	recent, problem := int(follows.Recent)*binary.Size(Collective{}), int(follows.Problem)
	if recent+problem+int(follows.Alone) != len(data) {
		return errMalformed
	}
	if follows.Recent > 0 {
		s.Recent = make([]Collective, follows.Recent)
		if _, err := binary.Decode(data, binary.LittleEndian, s.Recent); err != nil {
			return errMalformed
		}
	}
	s.Problem, s.Alone = string(data[recent:recent+problem]), string(data[recent+problem:])
	return nil
}
