package cell

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"strconv"
	"strings"

	"gonbatch/internal/gocell"
)

// rewriters return the text that replaces a magic run by the kernel, or by GoNB afterwards, and
// record its settings.
var rewriters = map[string]func(*preparer, gocell.Call) (string, error){
	gocell.Shell:         command,
	gocell.ShellInModule: command,
	gocell.AllowFail:     setting(func(p *preparer) { p.AllowFail = true }),
	"%with_inputs":       setting(func(*preparer) {}), // All programs get input anyway.
	"%with_password":     setting(func(p *preparer) { p.Password = true }),
	gocell.Keep:          keep,
	gocell.Env:           setEnv,
	"%who":               alone("%ls"),
	"%devices":           devices,
	"%timeit":            timeit,
	"%time":              timed,
	"%distributed":       ranks,
}

// setting rewrites a magic that changes nothing in the cell.
func setting(set func(*preparer)) func(*preparer, gocell.Call) (string, error) {
	return func(p *preparer, _ gocell.Call) (string, error) {
		set(p)
		return "", nil
	}
}

// alone replaces a magic without arguments with a string.
func alone(text string) func(*preparer, gocell.Call) (string, error) {
	return func(_ *preparer, call gocell.Call) (string, error) {
		if rest := call.Rest(); rest != "" {
			return "", fmt.Errorf("%s %s: it takes no arguments", call.Name(), rest)
		}
		return text, nil
	}
}

func keep(p *preparer, call gocell.Call) (string, error) {
	change, err := call.Kept()
	if err == nil {
		p.Keep, p.keepLine = append(p.Keep, change), call.Line
	}
	return "", err
}

// setEnv rewrites %env for GoNB, which doesn't accept NAME=VALUE with a name of one letter.
func setEnv(p *preparer, call gocell.Call) (string, error) {
	name, value, err := call.Env()
	if err != nil {
		return "", err
	}
	p.Env = append(p.Env, name)
	rest := call.Rest()
	switch {
	case len(call.Args()) == 2:
	case value == "":
		rest = name + ` ""`
	default:
		rest = strings.Replace(strings.TrimPrefix(rest, `"`+name+"="), name+"=", name+" ", 1)
		if strings.HasPrefix(call.Rest(), `"`) {
			rest = name + ` "` + rest
		}
	}
	return gocell.Env + " " + rest, nil
}

func devices(p *preparer, call gocell.Call) (string, error) {
	if len(p.file.Mains) > 0 {
		return "", errors.New("%devices is a program of its own: put it into a different cell from the one with %%")
	}
	return alone(bareOpen+"gonbatch__devices() }")(p, call)
}

func timed(p *preparer, call gocell.Call) (string, error) {
	if rest := call.Rest(); rest != "" {
		return "", fmt.Errorf("%%time %s: it takes no arguments: put it on a line of its own in the cell to time", rest)
	}
	p.Time = true
	return "", nil
}

// mostRanks is the maximum number of ranks that %distributed starts, on one machine.
const mostRanks = 64

func ranks(p *preparer, call gocell.Call) (string, error) {
	n, err := strconv.Atoi(call.Rest())
	if err != nil || n < 1 || n > mostRanks {
		return "", fmt.Errorf("%%distributed %s: want the number of ranks, 1 to %d, as in %%distributed 4", call.Rest(), mostRanks)
	}
	p.Ranks = n
	return "", nil
}

func timeit(_ *preparer, call gocell.Call) (string, error) {
	statement, err := repeatable(call.Rest())
	if err != nil {
		return "", fmt.Errorf("%%timeit %s: want a Go expression: %w", call.Rest(), err)
	}
	return bareOpen + "gonbatch__timeit(func() { " + statement + " }) }", nil
}

// repeatable returns an expression as the statement that %timeit repeats.
func repeatable(text string) (string, error) {
	x, err := parser.ParseExpr(text)
	if err != nil {
		return "", err
	}
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	if !ok {
		return "gonbatch__sink = " + text, nil
	}
	if ident, ok := call.Fun.(*ast.Ident); ok && !gocell.IsStatement(ident.Name) {
		return "gonbatch__sink = " + text, nil
	}
	return text, nil
}
