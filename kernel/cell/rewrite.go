package cell

import (
	"fmt"
	"go/ast"
	"go/parser"
	"slices"
	"strconv"
	"strings"
)

// rewritten are the magics of this kernel that become Go, another magic, or a setting.
var rewritten = []string{"%time", "%timeit", "%distributed", "%devices", "%who"}

// mostRanks is how many ranks %distributed starts at most, on one machine.
const mostRanks = 64

// rewrite puts into line i what its magic stands for.
func (p *Prepared) rewrite(lines []string, i int) error {
	name, args, _ := strings.Cut(joined(lines, i), " ")
	args = strings.TrimSpace(args)
	for end := lastLine(lines, i); end > i; end-- {
		lines[end] = ""
	}
	lines[i] = ""
	if args != "" && (name == "%who" || name == "%devices") {
		return fmt.Errorf("line %d: %s %s: it takes nothing", i+1, name, args)
	}
	switch name {
	case "%who":
		lines[i] = "%ls"
	case "%devices":
		if slices.ContainsFunc(lines, opensMain) {
			return fmt.Errorf("line %d: %%devices is a program of its own: put it into another cell than the one with %%%%", i+1)
		}
		lines[i] = bareOpen + "gonbatch__devices() }"
	case "%timeit":
		body, err := timed(args)
		if err != nil {
			return fmt.Errorf("line %d: %%timeit %s: %w", i+1, args, err)
		}
		lines[i] = bareOpen + "gonbatch__timeit(func() { " + body + " }) }"
	case "%time":
		p.Time = true
		if args != "" {
			return fmt.Errorf("line %d: %%time %s: it takes nothing: it stands in a line of its own, in the cell whose time it tells", i+1, args)
		}
	case "%distributed":
		n, err := strconv.Atoi(args)
		if err != nil || n < 1 || n > mostRanks {
			return fmt.Errorf("line %d: %%distributed %s: want the number of ranks, 1 to %d, as in %%distributed 4", i+1, args, mostRanks)
		}
		p.Ranks = n
	}
	return nil
}

// timed is the statement that %timeit repeats.
func timed(text string) (string, error) {
	x, err := parser.ParseExpr(text)
	if err != nil {
		return "", fmt.Errorf("want a Go expression: %w", err)
	}
	if call, ok := ast.Unparen(x).(*ast.CallExpr); ok {
		if ident, ok := call.Fun.(*ast.Ident); !ok || !basic[ident.Name] && ident.Name != "len" && ident.Name != "cap" {
			return text, nil
		}
	}
	return "gonbatch__sink = " + text, nil
}
