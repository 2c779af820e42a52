package export

import (
	"regexp"
	"slices"
	"strings"
)

// goPrefix may stand before a magic, so that Go tools take its line for a comment.
const goPrefix = "//gonb:"

// magicLine is one % or ! line of a cell, its continuation lines joined.
type magicLine struct {
	line  int    // where it starts in the cell, from 1
	kind  byte   // '%' or '!'
	text  string // what follows the % or !
	words []string
}

// name is the magic's name without its %.
func (m magicLine) name() string {
	if len(m.words) == 0 {
		return ""
	}
	return m.words[0]
}

// args are the words after the name.
func (m magicLine) args() []string {
	if len(m.words) < 2 {
		return nil
	}
	return m.words[1:]
}

// cellCode is a code cell taken apart.
type cellCode struct {
	// special is the cell magic (%%writefile, %%script, ...) that makes the whole cell something else than Go.
	special *magicLine
	// magics are the % and ! lines, in order.
	magics []magicLine
	// goLines are the cell's lines with all that is not Go emptied: line n of the cell is goLines[n-1].
	goLines []string
}

// cellMagics turn a whole cell into something else than Go; they only count on its first line.
var cellMagics = map[string]bool{"%writefile": true, "%script": true, "%bash": true, "%sh": true, "%gx": true}

// packageLine is a package clause, which GoNB drops.
var packageLine = regexp.MustCompile(`^package\s+\w+\s*(;\s*)?(//.*)?$`)

// splitCell takes a code cell's source apart.
func splitCell(source string) cellCode {
	lines := strings.Split(strings.ReplaceAll(source, "\r\n", "\n"), "\n")
	if m, ok := readCellMagic(lines[0]); ok {
		return cellCode{special: &m}
	}
	code := cellCode{goLines: make([]string, len(lines))}
	for i := 0; i < len(lines); {
		m, next, ok := readMagic(lines, i)
		if ok {
			if m.text != "" {
				code.magics = append(code.magics, m)
			}
			i = next
			continue
		}
		if !packageLine.MatchString(lines[i]) {
			code.goLines[i] = lines[i]
		}
		i++
	}
	return code
}

// readCellMagic reads a cell's first line, if it makes the whole cell something else than Go. No other line belongs to it.
func readCellMagic(first string) (m magicLine, ok bool) {
	text, ok := strings.CutPrefix(strings.TrimPrefix(first, goPrefix), "%")
	m = magicLine{line: 1, kind: '%', text: text, words: splitWords(text)}
	return m, ok && cellMagics[m.name()]
}

// readMagic reads the magic that starts at lines[i], if one does, and says which line follows it.
func readMagic(lines []string, i int) (m magicLine, next int, ok bool) {
	first := strings.TrimPrefix(lines[i], goPrefix)
	if len(first) < 2 || first[0] != '%' && first[0] != '!' {
		return m, i, false
	}
	text, next := joinLines(lines, i)
	m = magicLine{line: i + 1, kind: text[0], text: strings.TrimLeft(text[1:], " \t")}
	m.words = splitWords(m.text)
	return m, next, true
}

// joinLines joins the lines from i on, as long as they end in a backslash, and says which line follows.
func joinLines(lines []string, i int) (text string, next int) {
	for ; i < len(lines); i++ {
		text += strings.TrimPrefix(lines[i], goPrefix)
		if !strings.HasSuffix(text, `\`) {
			return text, i + 1
		}
		text = strings.TrimSuffix(text, `\`) + " "
	}
	return text, i
}

// has tells whether the cell has a magic.
func (c cellCode) has(name string) bool {
	return slices.ContainsFunc(c.magics, func(m magicLine) bool { return m.kind == '%' && m.name() == name })
}

// hasGo tells whether the cell has any Go. A cell magic has none.
func (c cellCode) hasGo() bool {
	for _, line := range c.goLines {
		if strings.TrimSpace(line) != "" {
			return true
		}
	}
	return false
}
