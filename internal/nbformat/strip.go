package nbformat

import (
	"bytes"
	"errors"
	"io"
)

// stripOutputs reads a notebook's JSON to its end and gives it back with empty outputs of the
// cells, so that images and logs of hundreds of megabytes never lie in memory. Line breaks stay: a
// mistake keeps the number of its line. What is not a notebook comes back as it is, for a parser to
// refuse.
func stripOutputs(r io.Reader) ([]byte, error) {
	s := &stripper{}
	chunk := make([]byte, 64<<10)
	for {
		n, err := r.Read(chunk)
		for _, c := range chunk[:n] {
			s.next(c)
		}
		if errors.Is(err, io.EOF) {
			return s.out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// cellDepth is how many containers are open within a cell: the notebook, its list of cells, and the
// cell.
const cellDepth = 3

// stripper is the state between two bytes of JSON.
type stripper struct {
	out bytes.Buffer
	// open are the containers that are open: '{' or '['.
	open []byte
	// wantKey tells that a string which begins now is a key of an object.
	wantKey bool
	// inString and escaped tell that the next byte belongs to a string, and that a backslash stands
	// before it.
	inString, escaped bool
	// key is the key that was read last, as it stands in the file, or is being read if inKey is
	// set.
	key   []byte
	inKey bool
	// inCells tells that the notebook's value being read is that of "cells"; skips that a cell's
	// outputs are.
	inCells, skips bool
}

// next takes one byte.
func (s *stripper) next(c byte) {
	if s.skips && len(s.open) == cellDepth && !s.inString && (c == ',' || c == '}') {
		s.skips = false
	}
	if !s.skips || c == '\n' {
		s.out.WriteByte(c)
	}
	if s.inString {
		s.nextInString(c)
		return
	}
	switch c {
	case '"':
		s.inString, s.inKey = true, s.wantKey
		if s.inKey {
			s.key = s.key[:0]
		}
	case '{', '[':
		s.open = append(s.open, c)
		s.wantKey = c == '{'
	case '}', ']':
		s.open = s.open[:max(0, len(s.open)-1)]
		s.wantKey = false
	case ',':
		s.wantKey = len(s.open) > 0 && s.open[len(s.open)-1] == '{'
	case ':':
		s.value()
	}
}

// maxKey is more than the length of any key that matters.
const maxKey = 16

func (s *stripper) nextInString(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString, s.inKey = false, false
		return
	}
	if s.inKey && len(s.key) < maxKey {
		s.key = append(s.key, c)
	}
}

// value notes what the value behind a key is.
func (s *stripper) value() {
	s.wantKey = false
	switch {
	case s.skips:
	case len(s.open) == 1:
		s.inCells = string(s.key) == "cells"
	case s.inCells && string(s.open) == "{[{" && string(s.key) == "outputs":
		s.skips = true
		s.out.WriteString("[]")
	}
}
