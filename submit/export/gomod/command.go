package gomod

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// Line describes a !* line before it runs.
type Line struct {
	// Changes is set if the line has a command that changes go.mod or go.work.
	Changes bool
	// Left are the line's commands and files that are left out because they don't concern the
	// module.
	Left []string
}

// ReadLine reads a !* line.
func ReadLine(line string) (l Line) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return Line{Left: []string{line}}
	}
	depends := false // Something uses the output of a command that is left out.
	syntax.Walk(file, func(node syntax.Node) bool {
		left := len(l.Left)
		switch node := node.(type) {
		case *syntax.CallExpr:
			l.call(node)
		case *syntax.Redirect:
			l.redirect(node)
		case *syntax.CmdSubst, *syntax.ProcSubst:
			syntax.Walk(node, func(inner syntax.Node) bool {
				if call, ok := inner.(*syntax.CallExpr); ok {
					l.call(call)
				}
				return true
			})
			depends = depends || len(l.Left) > left
			return false
		}
		return true
	})
	l.Changes = l.Changes && !depends
	return l
}

// call reads one command.
func (l *Line) call(call *syntax.CallExpr) {
	if len(call.Args) == 0 {
		return
	}
	var words []string
	for _, arg := range call.Args {
		words = append(words, arg.Lit())
	}
	switch {
	case Replayed(words):
		l.Changes = l.Changes || words[0] == "rm" || words[1] != "env"
	case !interp.IsBuiltin(words[0]):
		l.Left = append(l.Left, strings.TrimSpace(strings.Join(words[:min(2, len(words))], " ")))
	}
}

// redirect reads a redirection: one from or to a file other than /dev/null is left out.
func (l *Line) redirect(r *syntax.Redirect) {
	switch r.Op {
	case syntax.DplIn, syntax.DplOut, syntax.WordHdoc, syntax.Hdoc, syntax.DashHdoc:
		return
	}
	if to := r.Word.Lit(); to != "/dev/null" {
		l.Left = append(l.Left, r.Op.String()+to)
	}
}

// replayed are the subcommands of go mod and go work that concern modules.
var replayed = map[string][]string{
	"mod":  {"edit", "tidy", "init", "download"},
	"work": {"init", "use", "edit", "sync"},
}

// Replayed reports whether a command concerns the module and is run again for a job.
func Replayed(words []string) bool {
	switch {
	case words[0] == "rm":
		rest := slices.DeleteFunc(slices.Clone(words[1:]), func(w string) bool { return w == "-f" })
		return len(rest) > 0 && !slices.ContainsFunc(rest, func(w string) bool { return w != "go.work" && w != "go.work.sum" })
	case words[0] != "go" || len(words) < 2:
		return false
	case words[1] == "get" || words[1] == "env":
		return true
	}
	return len(words) > 2 && slices.Contains(replayed[words[1]], words[2])
}
