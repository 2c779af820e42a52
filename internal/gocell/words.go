package gocell

import (
	"go/scanner"
	"go/token"
	"iter"
	"strings"
)

// split splits a magic's line into words at spaces and tabs. Double quotes preserve spaces, and can
// make an empty word. Inside quotes, a backslash takes the next character literally, except that \n
// and \t are newline and tab. Outside quotes, a backslash is an ordinary character. These are
// GoNB's rules, not a shell's.
func split(line string) []string {
	var words []string
	var word strings.Builder
	started, quoted, escaped := false, false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(unescape(r))
			escaped = false
		case quoted && r == '\\':
			escaped = true
		case r == '"':
			quoted = !quoted
			started = true
		case !quoted && (r == ' ' || r == '\t' || r == '\n'):
			if started {
				words = append(words, word.String())
			}
			word.Reset()
			started = false
		default:
			word.WriteRune(r)
			started = true
		}
	}
	if started {
		words = append(words, word.String())
	}
	return words
}

// unescape returns the character that a backslash before r stands for.
func unescape(r rune) rune {
	switch r {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	}
	return r
}

// Token is a token of Go, with its offset and its line, from 1, in the source.
type Token struct {
	Offset, Line int
	Kind         token.Token
	Text         string
}

// Tokens returns the tokens of a source, which may have syntax errors.
func Tokens(source string, mode scanner.Mode) iter.Seq[Token] {
	return func(yield func(Token) bool) {
		file := token.NewFileSet().AddFile("", -1, len(source))
		var s scanner.Scanner
		s.Init(file, []byte(source), func(token.Position, string) {}, mode)
		for {
			pos, kind, text := s.Scan()
			if kind == token.EOF || !yield(Token{file.Offset(pos), file.PositionFor(pos, false).Line, kind, text}) {
				return
			}
		}
	}
}
