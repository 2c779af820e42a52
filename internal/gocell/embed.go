package gocell

import (
	"errors"
	"go/ast"
	"go/token"
)

// ErrEmbed refuses a //go:embed line in a cell: its program is compiled in a folder of its own.
var ErrEmbed = errors.New("//go:embed can't take files into a notebook's programs, which are compiled elsewhere: read the file when the program runs, with os.ReadFile or os.DirFS")

// EmbedLine returns the position of the first //go:embed line of a file, which must have its
// comments.
func EmbedLine(file *ast.File) (at token.Pos, found bool) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if d, ok := ast.ParseDirective(comment.Pos(), comment.Text); ok && d.Tool == "go" && d.Name == "embed" {
				return comment.Pos(), true
			}
		}
	}
	return token.NoPos, false
}
