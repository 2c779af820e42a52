package cell

import (
	"fmt"
	"strings"
)

// Declare puts a package-level declaration in the place of a magic, which stood in line (from 1) of a prepared cell, and what it imports
// ("NAME PATH", as in Go) before the cell's own Go. The cell keeps its lines.
func Declare(code string, line int, imported, declaration string) (string, error) {
	lines := strings.Split(code, "\n")
	at := line - 1
	if at < 0 || at >= len(lines) {
		return code, fmt.Errorf("line %d: the cell has %d lines", line, len(lines))
	}
	for i, text := range lines[:at] {
		if opensMain(text) {
			return code, fmt.Errorf("line %d: it declares a variable, which can't be done within main: put it before line %d, %s", line, i+1, text)
		}
	}
	lines[at] = declaration + lines[at]
	first := firstGo(lines)
	lines[first] = "import " + imported + "; " + lines[first]
	return strings.Join(lines, "\n"), nil
}

// firstGo is the first line that is Go.
func firstGo(lines []string) int {
	for i := 0; i < len(lines); i++ {
		line := trim(lines[i])
		switch {
		case strings.TrimSpace(line) == "", strings.HasPrefix(line, "package "):
		case line[0] == '%' || line[0] == '!':
			i = lastLine(lines, i)
		default:
			return i
		}
	}
	return 0
}
