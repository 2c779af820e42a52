package decl

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/scanner"
	"go/token"
	"strings"

	"gonbatch/internal/gocell"
	"gonbatch/submit/export/nbcell"
)

// tokenLine is the line of a Go token, in the cell or in the formatted text.
type tokenLine struct {
	line int
	// first is set if the token begins its line of the formatted text.
	first bool
}

// withDirectives returns a gofmt-ed declaration, with //line directives wherever the line numbers
// differ from the cell's.
func withDirectives(cell *nbcell.Cell, chunks []chunk) (string, error) {
	out, err := formatted(cell, chunks)
	if err != nil {
		return "", err
	}
	origin := chunkTokens(chunks)
	placed := scanTokens(out)
	if len(origin) != len(placed) {
		return "", cell.Errorf(chunks[0].line, "gofmt changed the declaration from %d to %d tokens; please report this", len(origin), len(placed))
	}
	return insertDirectives(cell.File, out, origin, placed), nil
}

// formatted returns a declaration as gofmt writes it, without the lines that GoNB drops.
func formatted(cell *nbcell.Cell, chunks []chunk) (string, error) {
	var text strings.Builder
	for _, c := range chunks {
		text.WriteString(c.text)
	}
	formatted, err := format.Source([]byte(strings.TrimSpace(text.String())))
	if err != nil {
		return "", cell.Errorf(chunks[0].line, "cannot be formatted: %v", err)
	}
	return gocell.WithoutGone(strings.TrimRight(string(formatted), "\n") + "\n"), nil
}

// chunkTokens returns each token's line in the cell. A token from no cell gets the line of the
// token before it.
func chunkTokens(chunks []chunk) []int {
	var lines []int
	last := 0
	for _, c := range chunks {
		for _, t := range scanTokens(c.text) {
			if c.line > 0 {
				last = c.line + t.line - 1
			}
			lines = append(lines, last)
		}
	}
	for i := len(lines) - 1; i > 0; i-- {
		if lines[i-1] == 0 {
			lines[i-1] = lines[i]
		}
	}
	return lines
}

// scanTokens returns the tokens of src that gofmt neither adds nor removes, in order: all except
// comments, commas, semicolons and parentheses.
func scanTokens(src string) []tokenLine {
	var tokens []tokenLine
	lastLine := 0 // the last line of the text scanned so far
	for t := range gocell.Tokens(src, scanner.ScanComments) {
		switch t.Kind {
		case token.SEMICOLON:
			if t.Text == "\n" {
				continue
			}
		case token.COMMENT, token.COMMA, token.LPAREN, token.RPAREN:
		default:
			tokens = append(tokens, tokenLine{t.Line, t.Line != lastLine})
		}
		lastLine = t.Line + strings.Count(t.Text, "\n")
	}
	return tokens
}

// insertDirectives puts a //line directive before the first token and before each line whose number
// would be wrong.
func insertDirectives(file, text string, origin []int, placed []tokenLine) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	before := map[int]int{} // formatted line -> the cell's line
	offset, known := 0, false
	for i, t := range placed {
		if !t.first || known && t.line+offset == origin[i] {
			continue
		}
		before[t.line] = origin[i]
		offset, known = origin[i]-t.line, true
	}
	var out strings.Builder
	for i, line := range lines {
		if at, ok := before[i+1]; ok {
			if i > 0 && needsSeparator(line, lines[i-1]) {
				out.WriteString("//\n")
			}
			fmt.Fprintf(&out, "//line %s:%d:1\n", file, at)
		}
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.String()
}

// needsSeparator reports whether gofmt needs an empty comment line between a doc comment's text and
// a directive.
func needsSeparator(line, above string) bool {
	if strings.HasPrefix(line, "\t") || strings.HasPrefix(line, " ") || !strings.HasPrefix(above, "//") {
		return false
	}
	return !isDirective(above)
}

// isDirective reports whether a comment is for a tool (//go:noinline), not for a reader.
func isDirective(comment string) bool {
	_, isTool := ast.ParseDirective(token.NoPos, comment)
	return isTool || strings.HasPrefix(comment, "//line ") || strings.HasPrefix(comment, "//export ") || strings.HasPrefix(comment, "//extern ")
}
