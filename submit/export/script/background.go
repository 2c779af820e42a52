package script

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// LeavesRunning reports whether shell commands start something in the background that they neither
// wait for nor end. Those that only bash can parse count as ones that don't.
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
			waits = waits || len(n.Args) > 0 && slices.Contains([]string{"wait", "kill", "pkill", "killall", "trap"}, n.Args[0].Lit())
		}
		return true
	})
	return leaves && !waits
}
