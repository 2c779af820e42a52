package gocell

import (
	"go/scanner"
	"go/token"
	"iter"
)

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
