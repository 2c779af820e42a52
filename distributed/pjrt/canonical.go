package pjrt

import (
	"bytes"
	"strconv"

	"gonbatch/distributed/stablehlo"
)

// bytecode is the prefix of a program in binary form.
const bytecode = "ML\xefR"

// canonical returns the text of a program with its values renamed to %v0, %v1 and so on, in order
// of appearance. The names mean nothing to XLA, but GoMLX derives them from the names of variables,
// some of which are random: those of metrics. Programs with the same canonical text have the same
// code.
func canonical(program []byte) []byte {
	if bytes.HasPrefix(program, []byte(bytecode)) {
		return program
	}
	out := make([]byte, 0, len(program))
	names := map[string]int{}
	for len(program) > 0 {
		n := plainLength(program)
		out = append(out, program[:n]...)
		if program = program[n:]; len(program) == 0 {
			break
		}
		name := program[:1+identifierLength(program[1:])]
		number, ok := names[string(name)]
		if !ok {
			number = len(names)
			names[string(name)] = number
		}
		out = strconv.AppendInt(append(out, "%v"...), int64(number), 10)
		program = program[len(name):]
	}
	return out
}

// plainLength returns the number of bytes before the next name of a value. Strings and comments
// contain none.
func plainLength(program []byte) int {
	for i := 0; i < len(program); i++ {
		switch program[i] {
		case '%':
			return i
		case '"':
			i += stablehlo.StringLength(program[i+1:])
		case '/':
			if bytes.HasPrefix(program[i:], []byte("//")) {
				i += lineLength(program[i:])
			}
		}
	}
	return len(program)
}

func lineLength(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// identifierLength returns the length of the identifier at the beginning of text, as MLIR's lexer
// reads it.
func identifierLength(text []byte) int {
	for i, c := range text {
		if !inIdentifier(c) {
			return i
		}
	}
	return len(text)
}

func inIdentifier(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '$' || c == '.' || c == '_' || c == '-'
}
