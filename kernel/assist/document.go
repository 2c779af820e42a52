package assist

import (
	"strings"
	"unicode"
	"unicode/utf16"

	"go.lsp.dev/protocol"
)

// document is a cell as gopls sees it: line i of the cell is line i+1 of the text, except for text
// inserted into one line.
type document struct {
	code, text string
	// Before column insertedAt (in bytes) of line insertedLine, insertedLength bytes were inserted.
	insertedLine, insertedAt, insertedLength int
}

// position returns the position in the text of a character of the cell.
func (d *document) position(at int) protocol.Position {
	before := prefix(d.code, at)
	line := strings.Count(before, "\n")
	column := before[strings.LastIndex(before, "\n")+1:]
	character := len(utf16.Encode([]rune(column)))
	if d.insertedLength > 0 && line+1 == d.insertedLine && len(column) >= d.insertedAt {
		character += d.insertedLength
	}
	return protocol.Position{Line: uint32(line + 1), Character: uint32(character)}
}

// prefix returns the code before character number at.
func prefix(code string, at int) string {
	for i := range code {
		if at <= 0 {
			return code[:i]
		}
		at--
	}
	return code
}

// charactersBefore returns how many characters of the code before at make up a length in UTF-16,
// charactersAfter how many of those after it.
func charactersBefore(code string, at, length int) int {
	units := utf16.Encode([]rune(prefix(code, at)))
	return len(utf16.Decode(units[max(0, len(units)-length):]))
}

func charactersAfter(code string, at, length int) int {
	units := utf16.Encode([]rune(code[len(prefix(code, at)):]))
	return len(utf16.Decode(units[:min(length, len(units))]))
}

// identifierAt returns a position within the identifier at the cursor or just before it. Among the
// arguments of a call, it is within the name of the function.
func identifierAt(code string, at int) int {
	runes := []rune(code)
	at = min(max(at, 0), len(runes))
	isPart := func(i int) bool {
		return i >= 0 && i < len(runes) && (runes[i] == '_' || unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	if isPart(at) {
		return at
	}
	if isPart(at - 1) {
		return at - 1
	}
	depth := 0
	for i := at - 1; i >= 0 && runes[i] != '\n'; i-- {
		switch runes[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth < 0 && isPart(i-1) {
				return i - 1
			}
		}
	}
	return at
}
