package gocell

import (
	"errors"
	"go/parser"
	"go/scanner"
	"go/token"
	"strings"
	"testing"
)

// TestRemedy: what to do about the parser's messages about cells.
func TestRemedy(t *testing.T) {
	const statements = "; statements need a main: put a line %% above them"
	tests := []struct{ source, want string }{
		{"x := 1", statements},
		{"for {\n}", statements},
		{"(f())", statements},
		{"*p = 3", statements},
		{"5", statements},
		{"!", "; a % or a ! alone does nothing: remove it, or write a magic or a shell command"},
		{"%", "; a % or a ! alone does nothing: remove it, or write a magic or a shell command"},
		{"%%\n%", "; a % or a ! alone does nothing: remove it, or write a magic or a shell command"},
		{"  %%\nf()", "; a magic stands at the beginning of its line: remove the space before the %"},
		{"%%\n\t%time", "; a magic stands at the beginning of its line: remove the space before the %"},
		{" !ls", "; a shell command stands at the beginning of its line: remove the space before the !"},
		{"%%\nimport \"fmt\"", "; imports stand above the line %%"},
		{"%%\nfunc helper() int { return 1 }", "; functions stand above the line %%; below it, write NAME := func"},
		{"%%\nfunc helper[T any](x T) {}", "; functions stand above the line %%; below it, write NAME := func"},
		{"%%\nfunc (T) M() {}", "; methods stand above the line %%"},
		{"%%\nfunc (t *T) M() int { return 1 }", "; methods stand above the line %%"},
		{"# a comment", "; comments begin with //; if the cell is for another kernel, as in Colab, tag it notebook-only"},
		{"\u00a0f()", "; it is invisible: delete it, or replace it with a space"},
		{"%%\nf()\u200b", "; it is invisible: delete it, or replace it with a space"},
		{"%%\n\ufefff()", "; it is invisible: delete it, or replace it with a space"},
		{"%%\n?f()", ""},
		{"func f() {\n}}", ""},
		{"func f( {", ""},
	}
	for _, tt := range tests {
		f := Parse(tt.source).File()
		_, err := parser.ParseFile(token.NewFileSet(), "", f.Text(), parser.SkipObjectResolution)
		var list scanner.ErrorList
		if !errors.As(err, &list) {
			t.Errorf("%q is parsed: %v", tt.source, err)
			continue
		}
		for _, message := range []string{list[0].Msg, list.Error()} {
			message = strings.TrimPrefix(message, list[0].Pos.String()+": ")
			if got := Remedy(message, f.Lines[min(list[0].Pos.Line-2, len(f.Lines)-1)]); got != tt.want {
				t.Errorf("%q: %s%s, want %s", tt.source, message, got, tt.want)
			}
		}
	}
}

// TestByteOrderMark: a byte order mark at the beginning of a cell is no part of it.
func TestByteOrderMark(t *testing.T) {
	if c := Parse("\ufeff%%\nf()"); !c.Has("%%") {
		t.Errorf("%q is no main", c.Lines)
	}
}
