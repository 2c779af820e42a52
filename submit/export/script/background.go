package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// LeavesRunning reports whether shell commands start something in the background for which they
// don't wait. Those that only bash can parse count as ones that don't.
func LeavesRunning(commands string) (leaves bool) {
	file, err := syntax.NewParser().Parse(strings.NewReader(commands), "")
	if err != nil {
		return false
	}
	waits := false
	syntax.Walk(file, func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.Stmt:
			leaves = leaves || n.Background
		case *syntax.CallExpr:
			waits = waits || len(n.Args) > 0 && n.Args[0].Lit() == "wait"
		}
		return true
	})
	return leaves && !waits
}
