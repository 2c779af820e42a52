package nbformat

import (
	"bytes"
	"errors"
	"io"
)

// stripOutputs reads a notebook's JSON to its end and returns it with empty cell outputs, so that
// hundreds of megabytes of images and logs are never in memory. Line breaks stay, so a mistake
// keeps its line number. If the input is not a notebook, it returns it unchanged, and a parser will
// refuse it.
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

// cellDepth is the number of open containers within a cell: the notebook, its list of cells, and
// the cell.
const cellDepth = 3

// stripper is the parser's state between two bytes of JSON.
type stripper struct {
	out bytes.Buffer
	// open are the open containers: '{' or '['.
	open []byte
	// wantKey is set if a string that begins now is an object's key.
	wantKey bool
	// inString is set if the next byte belongs to a string, and escaped if a backslash precedes it.
	inString, escaped bool
	// key is the last key that was read, as in the file; or the key being read, if inKey is set.
	key   []byte
	inKey bool
	// inCells is set while the value of the notebook's "cells" is being read, and skips while a
	// cell's outputs are.
	inCells, skips bool
}

// next processes one byte.
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

// value records what the value after a key is.
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
