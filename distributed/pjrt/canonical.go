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
		rest := bytes.TrimLeftFunc(program[1:], inIdentifier)
		name := program[:len(program)-len(rest)]
		number, ok := names[string(name)]
		if !ok {
			number = len(names)
			names[string(name)] = number
		}
		out = strconv.AppendInt(append(out, "%v"...), int64(number), 10)
		program = rest
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
				line, _, _ := bytes.Cut(program[i:], []byte("\n"))
				i += len(line)
			}
		}
	}
	return len(program)
}

// inIdentifier reports whether a character may be in an identifier, as MLIR's lexer reads it.
func inIdentifier(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '$' || c == '.' || c == '_' || c == '-'
}
