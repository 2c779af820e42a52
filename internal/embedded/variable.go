package embedded

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// Variable is a variable with embedded files.
type Variable struct {
	Spec *ast.ValueSpec
	// Lines are the //go:embed lines above it, and Patterns are their patterns.
	Lines    []*ast.Comment
	Patterns []string
}

// Mistake is a //go:embed line that the compiler would refuse.
type Mistake struct {
	Pos     token.Pos
	Message string
}

var _ error = (*Mistake)(nil)

// Error returns the message.
func (m *Mistake) Error() string { return m.Message }

// Variables returns the variables of a file with embedded files, in order. text is the file's
// source; the file must have its comments. As in Go, blank lines and comments may stand between a
// //go:embed line and its variable. The error is a *Mistake.
func Variables(file *ast.File, text string) (found []Variable, err error) {
	for _, group := range file.Comments {
		for _, comment := range group.List {
			directive, ok := ast.ParseDirective(comment.Pos(), comment.Text)
			if !ok || "//"+directive.Tool+":"+directive.Name != Directive {
				continue
			}
			spec := variableBelow(file, text, comment.Pos())
			patterns, why := patternsFor(directive, spec)
			if why != "" {
				return nil, &Mistake{comment.Pos(), fmt.Sprintf("%s: %s", strings.TrimSpace(comment.Text), why)}
			}
			if last := len(found) - 1; last < 0 || found[last].Spec != spec {
				found = append(found, Variable{Spec: spec})
			}
			v := &found[len(found)-1]
			v.Lines, v.Patterns = append(v.Lines, comment), append(v.Patterns, patterns...)
		}
	}
	return found, nil
}

// patternsFor returns the patterns of a line, or why it can't give a variable its files.
func patternsFor(directive ast.Directive, spec *ast.ValueSpec) (patterns []string, why string) {
	args, err := directive.ParseArgs()
	switch {
	case err != nil:
		return nil, err.Error()
	case len(args) == 0:
		return nil, "it names no file: add one, or a folder"
	case spec == nil:
		return nil, "it is above no variable: put it on a line of its own, directly above a variable that is declared outside of functions"
	case len(spec.Names) > 1:
		return nil, fmt.Sprintf("it gives files to one variable: declare %s on a line of its own", spec.Names[0].Name)
	case len(spec.Values) > 0 || spec.Type == nil:
		return nil, fmt.Sprintf("declare %[1]s with a type and without a value, as in var %[1]s string", spec.Names[0].Name)
	}
	for _, arg := range args {
		patterns = append(patterns, arg.Arg)
	}
	return patterns, ""
}

// variableBelow returns the variable to which a comment belongs: nothing but comments is between
// them, and the comment begins its line. It returns nil if there is none.
func variableBelow(file *ast.File, text string, comment token.Pos) *ast.ValueSpec {
	before := text[:comment-file.FileStart]
	if strings.TrimSpace(before[strings.LastIndex(before, "\n")+1:]) != "" {
		return nil
	}
	for _, d := range file.Decls {
		if d.End() <= comment {
			continue
		}
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.VAR || (comment < group.Pos()) == group.Lparen.IsValid() {
			return nil
		}
		for _, spec := range group.Specs {
			if comment < spec.Pos() {
				return spec.(*ast.ValueSpec)
			}
			if comment < spec.End() {
				return nil
			}
		}
		return nil
	}
	return nil
}
