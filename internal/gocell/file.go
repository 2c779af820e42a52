package gocell

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// Header begins every File: line n of the cell is line n+1 of the text.
const Header = "package main\n"

// File is a cell as a Go file: its lines, with every line that is not Go emptied, and the main for
// a %%, %main or %exec line. WithoutGone removes what GoNB drops from raw strings.
type File struct {
	// Lines are the cell's lines, with unchanged line and column numbers.
	Lines []string
	// Tail closes a main that extends to the end of the cell.
	Tail string
	// Mains are the lines, from 1, that request a main. Only the first one gets it.
	Mains []int
}

// File returns the Go of the cell.
func (c Cell) File() File {
	f := File{Lines: c.GoLines()}
	for _, i := range c.Gone() {
		f.Lines[i] = gone
	}
	for _, call := range c.Calls {
		var text, tail string
		switch name := call.Name(); {
		case name == "%%" || name == "%main":
			// The semicolon keeps the call from being the main's last value.
			text, tail = "func main() { flag.Parse();", "}\n"
		case name == Exec && len(call.Args()) > 0:
			text = "func main() { flag.Parse(); " + call.Args()[0] + "() }"
		default:
			continue
		}
		if len(f.Mains) == 0 {
			f.Lines[call.Line-1], f.Tail = text, tail
		}
		f.Mains = append(f.Mains, call.Line)
	}
	return f
}

// Text returns the file's source.
func (f File) Text() string { return Header + strings.Join(f.Lines, "\n") + "\n" + f.Tail }

// SetText replaces the lines with those of an edited Text.
func (f *File) SetText(text string) {
	body := strings.TrimSuffix(strings.TrimPrefix(text, Header), "\n"+f.Tail)
	f.Lines = strings.Split(body, "\n")
}

// Place returns the cell's line, from 1, and the column, from 0, of an offset in Text.
func (f File) Place(offset int) (line, column int) {
	before := f.Text()[:offset]
	return strings.Count(before, "\n"), offset - strings.LastIndex(before, "\n") - 1
}

// HasMain reports whether the file has a main function.
func (f File) HasMain() bool {
	tree, _ := parser.ParseFile(token.NewFileSet(), "", f.Text(), parser.SkipObjectResolution)
	return len(f.Mains) > 0 || tree != nil && slices.ContainsFunc(tree.Decls, func(d ast.Decl) bool {
		fn, ok := d.(*ast.FuncDecl)
		return ok && FuncKey(fn) == "main"
	})
}
