package kernel

import (
	"slices"
	"strings"
	"unicode/utf8"

	"gonbatch/kernel/build"
)

// isProgram reports whether a command is a cell's program, or the ranks of one: GoNB read its
// arguments from a magic.
func isProgram(command []string) bool {
	return strings.HasSuffix(command[0], ranksProgram) || strings.HasSuffix(command[0], build.ProgramSuffix)
}

// ungarbled returns the text of a magic's argument as it was typed. GoNB takes each byte for a
// character, so "é" is two.
func ungarbled(text string) string {
	var typed []byte
	for _, r := range text {
		if r > 0xff {
			return text
		}
		typed = append(typed, byte(r))
	}
	if !utf8.Valid(typed) {
		return text
	}
	return string(typed)
}

// ungarbledEnviron corrects the variables that were set by magics.
func ungarbledEnviron(environ, names []string) (typed []string) {
	for _, variable := range environ {
		if name, value, _ := strings.Cut(variable, "="); slices.Contains(names, name) {
			variable = name + "=" + ungarbled(value)
		}
		typed = append(typed, variable)
	}
	return typed
}
